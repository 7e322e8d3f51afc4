//go:build linux

package agent

import (
	"errors"
	"io/fs"

	"ebbtide.dev/ebbtide/internal/agent/disk"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

const maxJournal = 4 << 20

// Journal is the agent's journal in a folder of its own.
type Journal struct{ file disk.File }

// NewJournal returns the journal in a folder, which is created with the first entry.
func NewJournal(dir string) *Journal {
	return &Journal{file: disk.File{Dir: dir, Name: "journal.json", Max: maxJournal}}
}

// Load reads the journal; a missing one is empty. An unreadable one is renamed to journal.json.bad,
// and an empty one is returned with the error.
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

// Store writes the journal, and returns when it is on disk. After an error there is the old journal
// or this one.
func (j *Journal) Store(known core.Journal) error { return j.file.Write(known.Text()) }

// Clear removes a journal without entries.
func (j *Journal) Clear() error { return j.file.Remove() }
