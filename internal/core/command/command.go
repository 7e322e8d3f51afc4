// Package command spells the commands that messages suggest, for people who copy them into a
// shell. Text that others have written enters a command only as a name that the API server
// allows, and quoted. Anything else becomes a placeholder, so the command is still readable.
package command

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// placeholder replaces a name that the API server does not allow.
const placeholder = "NAME"

// Quoted holds one or more shell words. Only this package creates them.
type Quoted struct{ text string }

// String returns the words as a shell reads them.
func (w Quoted) String() string { return w.text }

// Of returns a command with the message around it. Each argument that is neither Quoted nor an
// integer must be a name.
func Of(format string, args ...any) string { return Join(format, args...).text }

// Join is Of for a part of a command.
func Join(format string, args ...any) Quoted {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch arg.(type) {
		case Quoted, int, int32, int64:
			safe[i] = arg
		default:
			safe[i] = Names(fmt.Sprint(arg))
		}
	}
	return Quoted{fmt.Sprintf(format, safe...)}
}

// Names returns names of objects, labels, annotations, taints or resources.
func Names(names ...string) Quoted {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = placeholder
		if len(validation.IsDNS1123Subdomain(name)) == 0 || len(validation.IsQualifiedName(name)) == 0 {
			words[i] = Quote(name).text
		}
	}
	return Quoted{strings.Join(words, " ")}
}

// Quote returns text of Ebbtide or of the user, such as a patch or a flag, as one word.
func Quote(text string) Quoted {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:@%+,=", r)
	}
	if text != "" && !strings.ContainsFunc(text, special) {
		return Quoted{text}
	}
	return Quoted{"'" + strings.ReplaceAll(text, "'", `'\''`) + "'"}
}

var plainFolder = regexp.MustCompile(`^/[A-Za-z0-9._/+@-]{0,255}$`)

// Folder returns the path of a folder, or the placeholder if the path needs quotes.
func Folder(path, placeholder string) Quoted {
	if plainFolder.MatchString(path) {
		return Quoted{path}
	}
	return Quoted{placeholder}
}
