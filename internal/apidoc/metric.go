package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const metricsHead = warning + `# Metrics

The manager serves metrics over HTTPS on port 8443, and an agent those with the prefix ` + "`ebbtide_agent_`" + `. [Monitoring](../monitoring.md) says
which to watch. The metrics of controller-runtime, client-go and the Go runtime are served as well.

`

// metric is one metric as the code defines it.
type metric struct {
	name, kind, help string
	labels           []string
}

// readMetrics reads the definitions of metrics in the Go files of a folder, by name.
func readMetrics(folder string) (metrics []metric, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != folder && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, is := node.(*ast.CallExpr)
			if m, defines := metricOf(call); is && defines {
				metrics = append(metrics, m)
			}
			return true
		})
		return nil
	})
	slices.SortFunc(metrics, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return metrics, err
}

// metricOf reads a call such as prometheus.NewGaugeVec(prometheus.GaugeOpts{…}, labels) or
// prometheus.NewDesc(name, help, labels, nil).
func metricOf(call *ast.CallExpr) (m metric, defines bool) {
	if call == nil || len(call.Args) == 0 {
		return metric{}, false
	}
	constructor, is := call.Fun.(*ast.SelectorExpr)
	if !is || !strings.HasPrefix(constructor.Sel.Name, "New") {
		return metric{}, false
	}
	m.kind = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(constructor.Sel.Name, "New"), "Vec"))
	if m.kind == "desc" && len(call.Args) == 4 {
		m.kind = "gauge"
		m.name, m.help, m.labels = textOf(call.Args[0]), textOf(call.Args[1]), textsOf(call.Args[2])
		return m, m.name != ""
	}
	options, is := call.Args[0].(*ast.CompositeLit)
	if !is {
		return metric{}, false
	}
	for _, element := range options.Elts {
		if option, is := element.(*ast.KeyValueExpr); is {
			switch fmt.Sprint(option.Key) {
			case "Name":
				m.name = textOf(option.Value)
			case "Help":
				m.help = textOf(option.Value)
			}
		}
	}
	if len(call.Args) > 1 {
		m.labels = textsOf(call.Args[1])
	}
	return m, m.name != "" && m.help != ""
}

// textOf returns the value of a string literal.
func textOf(e ast.Expr) string {
	literal, is := e.(*ast.BasicLit)
	if !is {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value)
	return text
}

// textsOf returns the values of a list of string literals.
func textsOf(e ast.Expr) (texts []string) {
	if list, is := e.(*ast.CompositeLit); is {
		for _, element := range list.Elts {
			texts = append(texts, textOf(element))
		}
	}
	return texts
}

func (w writer) metrics(metrics []metric) {
	w.line("| metric | type | labels | meaning |\n|---|---|---|---|")
	for _, m := range metrics {
		w.line("| `%s` | %s | %s | %s |", m.name, m.kind, cell(m.labels, ", "), cell([]string{w.prose(m.help)}, ""))
	}
}
