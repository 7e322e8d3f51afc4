package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/internal/core/phrase"
)

// Formats of -o. Without one a verb prints what people read.
const (
	formatJSON = "json"
	formatYAML = "yaml"
	formatName = "name"
	formatWide = "wide"
)

// output is how a verb prints what it has found or made: as its own sentences and tables,
// or as -o says.
type output struct {
	Format  string
	formats []string
}

// addFlag adds -o with these formats; what says what is printed in place of what.
func (o *output) addFlag(cmd *cobra.Command, what string, formats ...string) {
	o.formats = formats
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", what+". One of: "+strings.Join(formats, ", ")+".")
	// The flag is not missing.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// check refuses a format that the verb does not have.
func (o *output) check() error {
	if o.Format == "" || slices.Contains(o.formats, o.Format) {
		return nil
	}
	return fmt.Errorf("-o must be %s, not %q", phrase.Or(o.formats), o.Format)
}

// wide is true if people want more than fits a screen, and times that are absolute.
func (o *output) wide() bool { return o.Format == formatWide }

// forPrograms is true if a program reads what is printed, so that sentences go to
// standard error or nowhere.
func (o *output) forPrograms() bool { return o.Format != "" && !o.wide() }

// print prints an object as -o json, yaml or name wants it, name as KIND.GROUP/NAME with a
// line for each object; otherwise what text prints.
func (o *output) print(to io.Writer, object any, name string, text func(io.Writer) error) error {
	var out []byte
	var err error
	switch o.Format {
	case formatJSON:
		out, err = json.MarshalIndent(object, "", "    ")
	case formatYAML:
		out, err = yaml.Marshal(object)
	case formatName:
		out = []byte(name)
	default:
		return text(to)
	}
	if err != nil {
		return err
	}
	if len(out) == 0 {
		return nil
	}
	_, err = fmt.Fprintln(to, strings.TrimSuffix(string(out), "\n"))
	return err
}
