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

// File is a small file in a folder, which is made with it.
type File struct {
	Dir, Name string
	// Max is how many bytes it has at most.
	Max int64
	// Calls makes what changes the disk. Defaults to Kernel.
	Calls Caller
}

// Path is where it is.
func (f File) Path() string { return filepath.Join(f.Dir, f.Name) }

func (f File) call(name string, call func() error) error { return f.caller().Call(name, call) }

func (f File) caller() Caller {
	if f.Calls == nil {
		return Kernel{}
	}
	return f.Calls
}

// Read returns what is in the file.
//
// Errors: fs.ErrNotExist if there is none; it is no regular file, or too large.
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

// Reject keeps a file that makes no sense as one that ends in .bad, and returns why it
// makes none.
func (f File) Reject(why error) error {
	why = fmt.Errorf("the file %s cannot be read: %w", f.Path(), why)
	if err := os.Rename(f.Path(), f.Path()+".bad"); err != nil {
		why = errors.Join(why, err)
	}
	return why
}

// Write replaces the file, and returns when that is on disk.
//
// Errors: in the words of the kernel. The file is the one before, or this one.
func (f File) Write(data []byte) error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	temporary := f.Path() + ".tmp"
	// What a crash has left there may be anything.
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

// Remove removes the file; none is no error.
//
// Errors: in the words of the kernel.
func (f File) Remove() error {
	err := f.call("unlink", func() error { return os.Remove(f.Path()) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
