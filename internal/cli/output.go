package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/internal/core/phrase"
	"ebbtide.dev/ebbtide/internal/core/view"
)

// Formats of -o. Without one a verb prints text.
const (
	formatJSON = "json"
	formatYAML = "yaml"
	formatName = "name"
	formatWide = "wide"
)

// output prints the result of a verb as text, or as -o specifies.
type output struct {
	Format  string
	formats []string
}

// addFlag adds -o with these formats.
func (o *output) addFlag(cmd *cobra.Command, formats ...string) {
	o.formats = formats
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "output format. One of: "+strings.Join(formats, ", "))
	fixedValues(cmd, "output", formats...)
}

// fixedValues completes the value of a flag.
func fixedValues(cmd *cobra.Command, flag string, values ...string) {
	// The flag exists.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// check rejects a format that the verb does not have.
func (o *output) check() error {
	if o.Format == "" || slices.Contains(o.formats, o.Format) {
		return nil
	}
	return fmt.Errorf("-o must be %s, not %q", phrase.Or(o.formats), o.Format)
}

// isWide reports whether the text shows all lines, and absolute times.
func (o *output) isWide() bool { return o.Format == formatWide }

// isForPrograms reports whether a program reads the result, so that all text goes to standard error.
func (o *output) isForPrograms() bool { return o.Format != "" && !o.isWide() }

// print prints an object as -o json, yaml or name specifies, otherwise what text prints. The name
// is KIND.GROUP/NAME, one line for each object.
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
	if err != nil || len(out) == 0 {
		return err
	}
	_, err = fmt.Fprintln(to, strings.TrimSuffix(string(out), "\n"))
	return err
}

const dryRunNone, dryRunServer, dryRunClient = "none", "server", "client"

// dryRun is whether a verb writes.
type dryRun struct{ Mode string }

func (d *dryRun) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.Mode, "dry-run", dryRunNone, `Must be "none", "server", or "client". If client, only print the result. If server, submit a server-side request without persisting it.`)
	fixedValues(cmd, "dry-run", dryRunNone, dryRunServer, dryRunClient)
}

func (d *dryRun) check() error {
	if !slices.Contains([]string{dryRunNone, dryRunServer, dryRunClient}, d.Mode) {
		return fmt.Errorf("--dry-run must be none, server or client, not %q", d.Mode)
	}
	return nil
}

// options returns the options of a request.
func (d *dryRun) options() []string {
	if d.Mode == dryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// suffix marks a sentence that has not become true.
func (d *dryRun) suffix() string {
	switch d.Mode {
	case dryRunServer:
		return " (server dry run)"
	case dryRunClient:
		return " (dry run)"
	}
	return ""
}

// printer prints lines and tables, and remembers the first error.
type printer struct {
	to  io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.to, format+"\n", args...)
	}
}

// section prints indented lines below a title, at most so many.
func (p *printer) section(title string, lines []string, most int, more string) {
	if len(lines) == 0 {
		return
	}
	p.line("\n%s", title)
	for _, line := range lines[:min(most, len(lines))] {
		p.line("  %s", line)
	}
	if left := len(lines) - most; left > 0 {
		p.line("  and %d more%s", left, more)
	}
}

// table prints rows below a heading, if there are any.
func (p *printer) table(heading string, rows [][]string) {
	if p.err != nil || len(rows) == 0 {
		return
	}
	table := tabwriter.NewWriter(p.to, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, heading)
	for _, row := range rows {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	p.err = table.Flush()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// grouped are texts with the names that each is about, in the order of the first of each.
type grouped struct {
	all   []*group
	byKey map[string]*group
}

type group struct {
	text  string
	names []string
	pods  int
	// node is set if its pods are listed below the text.
	node *view.Node
}

func (g *grouped) add(key, text, name string) *group {
	one := g.byKey[key]
	if one == nil {
		if g.byKey == nil {
			g.byKey = map[string]*group{}
		}
		one = &group{text: text}
		g.all, g.byKey[key] = append(g.all, one), one
	}
	one.names = append(one.names, name)
	return one
}

// lines returns the texts, each behind some of its names.
func (g *grouped) lines() []string {
	lines := make([]string, len(g.all))
	for i, one := range g.all {
		lines[i] = phrase.Some(one.names, maxNotedPods) + ": " + one.text
	}
	return lines
}

// textStyle holds the settings of text output.
type textStyle struct {
	// wide prints all lines and absolute times.
	wide     bool
	terminal terminal
}

// most returns how many lines are printed.
func (s textStyle) most(short, wide int) int {
	if s.wide {
		return wide
	}
	return short
}
