package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

const (
	begin  = "<!-- versions: written by make test-versions -->\n"
	end    = "<!-- /versions -->"
	header = "| Kubernetes | tests of the API | stories | seconds |\n|---|---|---|---|\n"
	notRun = "not run"
)

// row is what ran on a release.
type row struct {
	version string
	api     result
	stories result
	// seconds that the tests took, on a machine that had built them.
	seconds int
}

func (r row) String() string {
	return fmt.Sprintf("| %s | %s | %s | %d |\n", r.version, r.api, r.stories, r.seconds)
}

// write puts a row into the table of a file.
func write(path string, versions []string, r row) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err = replace(text, versions, r)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, text, 0o644)
}

// replace returns a text with a table that has one row for each version: the new one for
// its version, those that were there for others.
func replace(text []byte, versions []string, r row) ([]byte, error) {
	before, rest, found := bytes.Cut(text, []byte(begin))
	table, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return nil, fmt.Errorf("there is no table between %q and %q", strings.TrimSpace(begin), end)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(table)) {
		if cells := strings.Split(line, "|"); len(cells) > 1 {
			rows[strings.TrimSpace(cells[1])] = line
		}
	}
	rows[r.version] = r.String()
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(begin + header)
	for _, version := range versions {
		if rows[version] == "" {
			rows[version] = fmt.Sprintf("| %s | %s | %s |  |\n", version, notRun, notRun)
		}
		out.WriteString(rows[version])
	}
	out.WriteString(end)
	out.Write(after)
	return out.Bytes(), nil
}
