package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
)

// group is the constants of one declaration.
type group struct {
	title, doc string
	constants  []apiConstant
}

// apiConstant is one constant of the API.
type apiConstant struct{ name, value, doc string }

// readConstants reads the exported constants of a Go package, in the order of its
// files. A group is named by the first sentence of its comment or, if it has none,
// by the type of its constants.
func readConstants(folder string) ([]group, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		files = append(files, file)
	}
	r := reader{info: types.Info{Defs: map[*ast.Ident]types.Object{}}, typeDocs: map[string]string{}}
	// Constants do not depend on other packages, so it does not matter that these
	// are not found.
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	_, _ = config.Check(folder, set, files, &r.info)
	return r.read(files), nil
}

// noImports imports nothing.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not needed") }

// reader reads constants with their values and comments.
type reader struct {
	info     types.Info
	typeDocs map[string]string
}

func (r reader) read(files []*ast.File) (groups []group) {
	declarations(files, func(d *ast.GenDecl) {
		if one, is := d.Specs[0].(*ast.TypeSpec); is {
			r.typeDocs[one.Name.Name] = text(d.Doc)
		}
	})
	declarations(files, func(d *ast.GenDecl) {
		if d.Tok != token.CONST {
			return
		}
		if g := r.group(d); len(g.constants) > 0 {
			groups = append(groups, g)
		}
	})
	return groups
}

func declarations(files []*ast.File, visit func(*ast.GenDecl)) {
	for _, file := range files {
		for _, declaration := range file.Decls {
			if d, is := declaration.(*ast.GenDecl); is && len(d.Specs) > 0 {
				visit(d)
			}
		}
	}
}

func (r reader) group(d *ast.GenDecl) group {
	title, doc, _ := strings.Cut(text(d.Doc), ". ")
	g := group{title: strings.TrimSuffix(title, "."), doc: doc}
	for _, spec := range d.Specs {
		one, is := spec.(*ast.ValueSpec)
		if !is || !one.Names[0].IsExported() {
			continue
		}
		name := one.Names[0]
		known, is := r.info.Defs[name].(*types.Const)
		if !is {
			continue
		}
		if named, is := known.Type().(*types.Named); is && g.title == "" {
			g.title, g.doc = named.Obj().Name(), r.typeDocs[named.Obj().Name()]
		}
		g.constants = append(g.constants, apiConstant{name: name.Name, value: valueOf(known.Val()), doc: text(one.Doc)})
	}
	return g
}

func valueOf(v constant.Value) string {
	if v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return v.ExactString()
}

// text is a comment as one line, without the markers of generators.
func text(comment *ast.CommentGroup) string {
	var lines []string
	for line := range strings.Lines(comment.Text()) {
		if !strings.HasPrefix(line, "+") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}

// valuesOf are the values of all constants, by their names.
func valuesOf(groups []group) map[string]string {
	values := map[string]string{}
	for _, g := range groups {
		for _, c := range g.constants {
			values[c.name] = c.value
		}
	}
	return values
}
