package main

import (
	"fmt"
	"regexp"
	"strings"
)

// writer writes Markdown.
type writer struct {
	out *strings.Builder
	// values maps the Go names of constants to their values: readers of YAML know nothing of the
	// names.
	values map[string]string
}

func (w writer) line(format string, a ...any) { fmt.Fprintf(w.out, format+"\n", a...) }

// kinds describes every kind, behind a list of links to them.
func (w writer) kinds(kinds []kind) {
	for _, k := range kinds {
		w.line("- [%s](#%s)", k.names.Kind, strings.ToLower(k.names.Kind))
	}
	w.line("- [LabelSelector](#labelselector)\n")
	for _, k := range kinds {
		w.kind(k)
	}
	w.labelSelector(kinds)
}

func (w writer) kind(k kind) {
	scope := "cluster-scoped"
	if k.namespaced {
		scope = "namespaced"
	}
	w.line("## %s\n\n`%s`, short `%s`, %s.\n", k.names.Kind, k.resource, strings.Join(k.names.ShortNames, "`, `"), scope)
	w.line("%s\n", w.prose(k.root.Description))
	w.refused(k.root)
	w.fields(k.fields)
}

// refused lists the rules of a whole object.
func (w writer) refused(s schema) {
	for _, words := range refusals(s) {
		w.line("- *Refused otherwise:* %s", escape(words))
	}
	if len(s.XValidations) > 0 {
		w.line("")
	}
}

func (w writer) fields(fields []field) {
	w.line("| field | type and limits | meaning |\n|---|---|---|")
	for _, f := range fields {
		kind := []string{typeOf(f.schema)}
		if f.required {
			kind = append(kind, "required")
		}
		meaning := []string{w.prose(f.schema.Description)}
		if f.like != "" {
			meaning = append(meaning, "Its fields are those of `"+f.like+"`.")
		}
		for _, words := range refusals(f.schema) {
			meaning = append(meaning, "*Refused otherwise:* "+escape(words))
		}
		w.line("| `%s` | %s | %s |", f.path, cell(append(kind, limits(f.schema)...), ", "), cell(meaning, "<br>"))
	}
	w.line("")
}

// labelSelector describes the type once that is in so many places.
func (w writer) labelSelector(kinds []kind) {
	for _, k := range kinds {
		if k.selector == nil {
			continue
		}
		described := kind{}
		described.collectInside("", *k.selector)
		for i := range described.fields {
			described.fields[i].path = strings.TrimPrefix(described.fields[i].path, ".")
		}
		w.line("## LabelSelector\n\nThe type of Kubernetes, within limits.\n")
		w.fields(described.fields)
		return
	}
}

// constants has a table for each group.
func (w writer) constants(groups []group) {
	for _, g := range groups {
		w.line("## %s\n", g.title)
		if g.doc != "" {
			w.line("%s\n", w.prose(g.doc))
		}
		w.line("| value | in Go | meaning |\n|---|---|---|")
		for _, c := range g.constants {
			meaning := strings.TrimLeft(strings.TrimPrefix(c.doc, c.name), ",: ")
			w.line("| `%s` | `%s` | %s |", c.value, c.name, cell([]string{w.prose(meaning)}, ""))
		}
		w.line("")
	}
}

var identifier = regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`)

// prose is a comment for readers of YAML: on one line, with the values of
// constants in place of their names.
func (w writer) prose(comment string) string {
	oneLine := strings.Join(strings.Fields(comment), " ")
	return identifier.ReplaceAllStringFunc(escape(oneLine), func(name string) string {
		if value, known := w.values[name]; known {
			return "`" + value + "`"
		}
		return name
	})
}

// escape keeps a browser from taking words for tags.
func escape(words string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(words)
}

// cell joins what is in a cell of a table.
func cell(parts []string, separator string) string {
	return strings.ReplaceAll(strings.Join(parts, separator), "|", `\|`)
}
