// Package arch checks the rules of docs/rules.md that no linter knows: which package may import
// which, that core is pure, and how large and clean files are. Each rule is a pure function from
// what it reads to its violations, so a test beside it can show it a bad example. The rules read
// the tree and the output of go list; they build and run nothing.
package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "ebbtide.dev/ebbtide"

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Name       string
	Imports    []string
	Deps       []string
	// TestImports and XTestImports are what its tests import.
	TestImports, XTestImports []string
}

// dir is the package's folder, relative to the root of the module.
func (p pkg) dir() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// source is one text file of the tree.
type source struct {
	// path is relative to the root of the module, with slashes.
	path string
	text string
	// syntax is nil if the file is not Go.
	syntax *ast.File
}

func (s source) dir() string {
	if i := strings.LastIndex(s.path, "/"); i >= 0 {
		return s.path[:i]
	}
	return "."
}

func (s source) lines() int { return strings.Count(s.text, "\n") }

func (s source) generated() bool { return s.syntax != nil && ast.IsGenerated(s.syntax) }

// packages lists every package of this module.
func packages(t *testing.T) []pkg {
	t.Helper()
	list, err := loadPackages()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	return list
}

// tree reads every text file of the repository, nested modules included.
func tree(t *testing.T) []source {
	t.Helper()
	list, err := loadTree()
	if err != nil {
		t.Fatalf("read tree: %v", err)
	}
	return list
}

// root is the folder of this module.
const root = "../.."

var loadPackages = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Imports,Deps", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var list []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
})

var loadTree = sync.OnceValues(func() ([]source, error) {
	var list []source
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if name == ".git" || name == ".bin" {
				return filepath.SkipDir
			}
			return nil
		}
		// In a worktree of Git .git is a file.
		if name == ".git" || !entry.Type().IsRegular() || strings.HasSuffix(path, ".sum") {
			return nil
		}
		s, err := read(path)
		list = append(list, s)
		return err
	})
	return list, err
})

func read(path string) (source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return source{}, err
	}
	return parse(filepath.ToSlash(name), string(text))
}

// parse turns the text of one file into a source.
func parse(path, text string) (source, error) {
	s := source{path: path, text: text}
	if !strings.HasSuffix(path, ".go") || strings.Contains(path, "/testdata/") {
		return s, nil
	}
	var err error
	s.syntax, err = parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
	return s, err
}

// example parses a small bad example for a rule.
func example(t *testing.T, path, text string) source {
	t.Helper()
	s, err := parse(path, text)
	if err != nil {
		t.Fatalf("parse example: %v", err)
	}
	return s
}
