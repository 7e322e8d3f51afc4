//go:build linux

package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// File is a small file in a folder, which is created with it.
type File struct {
	Dir, Name string
	Max       int64
	// Calls defaults to Kernel.
	Calls Caller
}

// Path returns the path of the file.
func (f File) Path() string { return filepath.Join(f.Dir, f.Name) }

func (f File) call(name string, call func() error) error { return f.caller().Call(name, call) }

func (f File) caller() Caller {
	if f.Calls == nil {
		return Kernel{}
	}
	return f.Calls
}

// Read returns the content. It fails with fs.ErrNotExist, or if the file is not regular or too
// large.
func (f File) Read() ([]byte, error) {
	stat, err := os.Lstat(f.Path())
	switch {
	case err != nil:
		return nil, err
	case !stat.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	}
	opened, err := os.OpenFile(f.Path(), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(io.LimitReader(opened, f.Max+1))
	if err == nil && int64(len(data)) > f.Max {
		err = fmt.Errorf("it has more than %d bytes", f.Max)
	}
	return data, err
}

// Reject renames an invalid file to one that ends in .bad, and returns why it is invalid.
func (f File) Reject(why error) error {
	why = fmt.Errorf("the file %s cannot be read: %w", f.Path(), why)
	if err := os.Rename(f.Path(), f.Path()+".bad"); err != nil {
		why = errors.Join(why, err)
	}
	return why
}

// Write replaces the file, and returns when it is on disk. After an error there is the old file or
// this one.
func (f File) Write(data []byte) error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	temporary := f.Path() + ".tmp"
	// A crash may have left anything there.
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	made, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = made.Close() }()
	for _, step := range []struct {
		name string
		call func() error
	}{
		{"write", func() error {
			_, err := made.Write(data)
			return err
		}},
		{"fsync", made.Sync},
		{"rename", func() error { return os.Rename(temporary, f.Path()) }},
	} {
		if err := f.call(step.name, step.call); err != nil {
			return fmt.Errorf("store %s: %w", f.Name, err)
		}
	}
	return SyncDir(f.caller(), f.Dir)
}

// Remove removes the file if it exists.
func (f File) Remove() error {
	err := f.call("unlink", func() error { return os.Remove(f.Path()) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
