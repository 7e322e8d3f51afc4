//go:build linux

package agent

import (
	"errors"
	"io/fs"

	"ebbtide.dev/ebbtide/internal/agent/disk"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

// maxJournal is more than any journal of ours has.
const maxJournal = 4 << 20

// Journal is the agent's, in a folder of its own.
type Journal struct{ file disk.File }

// NewJournal is the journal in a folder, which is made with the first entry.
func NewJournal(dir string) *Journal {
	return &Journal{file: disk.File{Dir: dir, Name: "journal.json", Max: maxJournal}}
}

// Load reads the journal; none is an empty one.
//
// Errors: it cannot be read. Then it is empty, and what was there is journal.json.bad, if
// that can be: it is known from the folder of the manifests, too.
func (j *Journal) Load() (core.Journal, error) {
	data, err := j.file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return core.Journal{}, nil
	}
	if err == nil {
		var known core.Journal
		if known, err = core.ParseJournal(data); err == nil {
			return known, nil
		}
	}
	return core.Journal{}, j.file.Reject(err)
}

// Store writes the journal, and returns when it is on disk.
//
// Errors: in the words of the kernel. The journal is the one before, or this one.
func (j *Journal) Store(known core.Journal) error { return j.file.Write(known.Text()) }

// Clear removes a journal without entries.
//
// Errors: in the words of the kernel.
func (j *Journal) Clear() error { return j.file.Remove() }
