//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

// maxJournal is more than any journal of ours has.
const maxJournal = 4 << 20

// Journal is the agent's, in a folder of its own.
type Journal struct {
	dir   string
	calls caller
}

// NewJournal is the journal in a folder, which is made with the first entry.
func NewJournal(dir string) *Journal { return &Journal{dir: dir, calls: kernel{}} }

func (j *Journal) path() string { return filepath.Join(j.dir, "journal.json") }

// Load reads the journal; none is an empty one.
//
// Errors: it cannot be read. Then it is empty, and what was there is journal.json.bad, if
// that can be: it is known from the folder of the manifests, too.
func (j *Journal) Load() (core.Journal, error) {
	data, err := j.bytes()
	if errors.Is(err, fs.ErrNotExist) {
		return core.Journal{}, nil
	}
	if err == nil {
		var known core.Journal
		if known, err = core.ParseJournal(data); err == nil {
			return known, nil
		}
	}
	err = fmt.Errorf("the journal %s cannot be read: %w", j.path(), err)
	if moved := os.Rename(j.path(), j.path()+".bad"); moved != nil {
		err = errors.Join(err, moved)
	}
	return core.Journal{}, err
}

func (j *Journal) bytes() ([]byte, error) {
	stat, err := os.Lstat(j.path())
	switch {
	case err != nil:
		return nil, err
	case !stat.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	}
	f, err := os.OpenFile(j.path(), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxJournal+1))
	if err == nil && len(data) > maxJournal {
		err = fmt.Errorf("it has more than %d bytes", maxJournal)
	}
	return data, err
}

// Store writes the journal, and returns when it is on disk.
//
// Errors: in the words of the kernel. The journal is the one before, or this one.
func (j *Journal) Store(known core.Journal) error {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return err
	}
	temporary := j.path() + ".tmp"
	// What a crash has left there may be anything.
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for _, step := range []struct {
		name string
		call func() error
	}{
		{"write", func() error {
			_, err := f.Write(known.Text())
			return err
		}},
		{"fsync", f.Sync},
		{"rename", func() error { return os.Rename(temporary, j.path()) }},
	} {
		if err := j.calls.Call(step.name, step.call); err != nil {
			return fmt.Errorf("store the journal: %w", err)
		}
	}
	return syncDir(j.calls, j.dir)
}

// Clear removes a journal without entries.
//
// Errors: in the words of the kernel.
func (j *Journal) Clear() error {
	err := j.calls.Call("unlink", func() error { return os.Remove(j.path()) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
