package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLicencesAreKnownByTheirWords(t *testing.T) {
	t.Parallel()
	const redistribution = "Redistribution and use in source and binary forms, with or without\nmodification, are permitted"
	for text, want := range map[string][]string{
		"    Apache License\n     Version 2.0, January 2004\n":                                  {"Apache-2.0"},
		"Permission is hereby granted, free of charge,\nto any person obtaining a copy of this": {"MIT"},
		redistribution + " ... used to endorse or promote products derived from":                {"BSD-3-Clause"},
		redistribution: {"BSD-2-Clause"},
		"Permission to use, copy, modify, and/or distribute this software for any\npurpose with or without fee is hereby granted": {"ISC"},
		"Mozilla Public License Version 2.0": {"MPL-2.0"},
		"Permission is hereby granted, free of charge, to any person obtaining a copy\n...\nLicensed under the Apache License, Version 2.0": {"Apache-2.0", "MIT"},
		"GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007": nil,
		"All rights reserved.":                               nil,
	} {
		if diff := cmp.Diff(want, identify(text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// What is passed on under terms that nobody has read is not passed on.
func TestAModuleUnderAnUnknownLicenceEndsIt(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"none":          {"main.go": "package main"},
		"unknown":       {"LICENSE": "GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007"},
		"of a part":     {"third_party/LICENSE": "Apache License Version 2.0, January 2004"},
		"is a Go file":  {"license.go": "// Apache License Version 2.0, January 2004\npackage main"},
		"is in an aide": {"docs.md": "Apache License Version 2.0, January 2004"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := readLicence("example.com/strange", folder(t, files))
			if err == nil || !strings.Contains(err.Error(), "the licence of example.com/strange is unknown: add the one in ") {
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
}

// Files below a module are of those whom it has copied from, and are passed on, too.
func TestTextsOfAllLicencesArePassedOnOnce(t *testing.T) {
	t.Parallel()
	const apache = "Apache License Version 2.0, January 2004"
	a, err := readLicence("example.com/a", folder(t, map[string]string{
		"LICENSE": apache, "NOTICE": "Of a.", "third_party/b/COPYING.txt": "Of b.", "testdata/LICENSE": "Of a test.",
	}))
	if err != nil {
		t.Fatal(err)
	}
	c, err := readLicence("example.com/c", folder(t, map[string]string{"License.md": apache + "\n"}))
	if err != nil {
		t.Fatal(err)
	}
	rule := "\n\n" + strings.Repeat("-", 80) + "\n\n"
	want := "example.com/a\nexample.com/c\n\n" + apache + rule + "example.com/a\n\nOf a." + rule + "example.com/a\n\nOf b." + rule
	if diff := cmp.Diff(want, string(licences{a}.with(licences{c, a}).text())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A module that comes in under other terms is noticed when it comes in, and not at the
// next release.
func TestAllModulesHaveKnownLicences(t *testing.T) {
	t.Parallel()
	r := &release{root: "../.."}
	listed, err := r.goTool(t.Context(), "list", "-deps", "-f", "{{with .Module}}{{if .Dir}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", "./cmd/...")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(listed) {
		module, dir, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found || known[module] || module == "ebbtide.dev/ebbtide" {
			continue
		}
		known[module] = true
		if _, err := readLicence(module, dir); err != nil {
			t.Error(err)
		}
	}
	if len(known) < 50 {
		t.Errorf("%d modules, want all of the manager and the plugin", len(known))
	}
}
