package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// standard stands for the standard library, which is in every binary but not in its build info.
const standard = "std"

// licence is under what a module may be passed on.
type licence struct {
	module string
	// ids are of SPDX; all of them hold.
	ids []string
	// texts are its files, and those of what the module has taken from others.
	texts []string
}

type licences []licence

// licenceFile matches the names of files with licences.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|notice|patents)([-._].*)?$`)

// licences reads those of everything that is in a binary from the module cache, where it
// was built from.
//
// Errors: a module without a licence, or with one that is not known here.
func (r *release) licences(ctx context.Context, binary string) (licences, error) {
	folders, err := r.folders(ctx, binary)
	if err != nil {
		return nil, fmt.Errorf("find the modules of %s: %w", binary, err)
	}
	var all licences
	for _, module := range slices.Sorted(maps.Keys(folders)) {
		l, err := readLicence(module, folders[module])
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// folders returns the folders of the modules in a binary.
func (r *release) folders(ctx context.Context, binary string) (map[string]string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	goroot, err := r.goTool(ctx, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	folders := map[string]string{standard: strings.TrimSpace(goroot)}
	if len(info.Deps) == 0 {
		return folders, nil
	}
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}
	for _, module := range info.Deps {
		args = append(args, module.Path)
	}
	listed, err := r.goTool(ctx, args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(listed) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if dir == "" {
			return nil, fmt.Errorf("module %s is not in the module cache", module)
		}
		folders[module] = dir
	}
	return folders, nil
}

func (r *release) goTool(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.root
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, exit.Stderr)
	}
	return string(out), err
}

// readLicence reads the files of a module. What is on top says which licence it has.
func readLicence(module, dir string) (licence, error) {
	l := licence{module: module}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != dir && (module == standard || entry.Name() == "testdata"):
			// Go says of all of its library what is on top of it.
			return filepath.SkipDir
		case entry.IsDir() || !licenceFile.MatchString(entry.Name()) || filepath.Ext(file) == ".go":
			return nil
		}
		text, err := os.ReadFile(file)
		l.texts = append(l.texts, string(text))
		if filepath.Dir(file) == dir {
			l.ids = append(l.ids, identify(string(text))...)
		}
		return err
	})
	if err != nil {
		return licence{}, fmt.Errorf("read the licence of %s: %w", module, err)
	}
	if len(l.ids) == 0 {
		return licence{}, fmt.Errorf("the licence of %s is unknown: add the one in %s to this program", module, dir)
	}
	slices.Sort(l.ids)
	l.ids = slices.Compact(l.ids)
	return l, nil
}

// phrases are found in one licence and in no other, in the order in which they are tried;
// white space and case do not count.
var phrases = []struct{ id, phrase string }{
	{"Apache-2.0", "apache license version 2.0, january 2004"},
	{"Apache-2.0", "licensed under the apache license, version 2.0"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"MPL-2.0", "mozilla public license, version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
}

// identify returns the licences that a text is, as SPDX calls them.
func identify(text string) (ids []string) {
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	for _, p := range phrases {
		if strings.Contains(text, p.phrase) && !slices.Contains(ids, p.id) {
			ids = append(ids, p.id)
		}
	}
	switch {
	case !strings.Contains(text, "redistribution and use in source and binary forms"):
	case strings.Contains(text, "endorse or promote products"):
		ids = append(ids, "BSD-3-Clause")
	default:
		ids = append(ids, "BSD-2-Clause")
	}
	return ids
}

// with are the licences of two binaries, each module once.
func (l licences) with(others licences) licences {
	all := slices.Concat(l, others)
	slices.SortStableFunc(all, func(a, b licence) int { return strings.Compare(a.module, b.module) })
	return slices.CompactFunc(all, func(a, b licence) bool { return a.module == b.module })
}

// text returns the licences of a binary: each text once, below the names of its modules.
func (l licences) text() []byte {
	modules := map[string][]string{}
	var order []string
	for _, one := range l {
		for _, text := range one.texts {
			text = strings.TrimSpace(text)
			if _, known := modules[text]; !known {
				order = append(order, text)
			}
			if !slices.Contains(modules[text], one.module) {
				modules[text] = append(modules[text], one.module)
			}
		}
	}
	var all []byte
	for _, text := range order {
		all = fmt.Appendf(all, "%s\n\n%s\n\n%s\n\n", strings.Join(modules[text], "\n"), text, strings.Repeat("-", 80))
	}
	return all
}
