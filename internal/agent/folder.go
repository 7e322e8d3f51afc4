//go:build linux

package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ebbtide.dev/ebbtide/api/v1alpha1"
	"ebbtide.dev/ebbtide/internal/agent/disk"
	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

const (
	// maxNames limits the entries of the folder. A node has about a hundred pods.
	maxNames = 4096
	// maxManifest limits a file: the API accepts no larger pods.
	maxManifest = 2 << 20
	// maxRead limits the changed content that one pass reads.
	maxRead = 64 << 20
)

// Folder is the manifest folder of the kubelet.
type Folder struct {
	path  string
	calls disk.Caller
	read  map[string]readFile
	// probed is the tested folder, fault the result.
	probed     unix.Stat_t
	probeFault error
}

type readFile struct {
	stat unix.Stat_t
	file core.File
}

// NewFolder returns the folder at a path, which need not exist.
func NewFolder(path string) *Folder { return &Folder{path: path, calls: disk.Kernel{}} }

// List reads the folder within limits. What cannot be read has a fault.
func (f *Folder) List() core.Folder {
	var stat unix.Stat_t
	switch err := unix.Stat(f.path, &stat); {
	case errors.Is(err, fs.ErrNotExist):
		f.read = nil
		return core.Folder{Known: true, Absent: true}
	case err != nil:
		return unreadable(fmt.Sprintf("%s cannot be read: %v", f.path, err))
	case stat.Mode&unix.S_IFMT != unix.S_IFDIR:
		return core.Folder{Fault: v1alpha1.StaticPodSingleFile, Message: fmt.Sprintf(
			"%s is a file. Static pods can be taken down if the kubelet's staticPodPath is a folder, and --manifest-dir the same.", f.path)}
	}
	names, err := f.names()
	if err != nil {
		return unreadable(err.Error())
	}
	list := core.Folder{Known: true}
	read, left := map[string]readFile{}, maxRead
	for _, name := range names {
		_, held := core.HeldFile(name)
		if !core.Visible(name) && !held {
			list.Files = append(list.Files, core.File{Name: name})
			continue
		}
		one := f.file(name, left)
		if one.file.Sum != "" && f.read[name] != one {
			left -= int(one.stat.Size)
		}
		read[name] = one
		list.Files = append(list.Files, one.file)
	}
	f.read = read
	if err := f.probe(stat); err != nil {
		list.Fault, list.Message = v1alpha1.StaticPodReadOnly, fmt.Sprintf("%s cannot be written, so no static pod can be taken down: %v", f.path, err)
	}
	return list
}

func unreadable(message string) core.Folder {
	return core.Folder{Fault: v1alpha1.StaticPodUnreadable, Message: message}
}

func (f *Folder) names() (names []string, err error) {
	dir, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	for seen := 0; ; {
		some, err := dir.Readdirnames(256)
		for _, name := range some {
			if core.Visible(name) || core.Ours(name) {
				names = append(names, name)
			}
		}
		if seen += len(some); seen > maxNames {
			return nil, fmt.Errorf("%s has more than %d entries; the rest is not read. Remove files that are no manifests", f.path, maxNames)
		}
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// file reads a file unless it is unchanged.
func (f *Folder) file(name string, left int) readFile {
	one := readFile{file: core.File{Name: name}}
	fault := func(err error) readFile {
		one.file.Fault = err.Error()
		return one
	}
	var link unix.Stat_t
	path := filepath.Join(f.path, name)
	if err := unix.Lstat(path, &link); err != nil {
		return fault(err)
	}
	// Only then is it opened: opening a device has effects, and opening a pipe may block forever.
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fault(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Fstat(fd, &one.stat); err != nil {
		return fault(err)
	}
	one.stat.Atim = unix.Timespec{}
	one.file.Changed = later(link.Ctim, one.stat.Ctim)
	if known, found := f.read[name]; found && known.stat == one.stat && known.file.Fault != tooMuch && known.file.Changed.Equal(one.file.Changed) {
		return known
	}
	switch {
	case one.stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return fault(errors.New("it is no regular file"))
	case one.stat.Size > maxManifest:
		return fault(fmt.Errorf("it has %d bytes; at most %d are read", one.stat.Size, maxManifest))
	case one.stat.Size > int64(left):
		return fault(errors.New(tooMuch))
	}
	data, err := readAll(fd)
	if err != nil {
		return fault(err)
	}
	sum := sha256.Sum256(data)
	one.file.Sum = hex.EncodeToString(sum[:])
	if one.file.Manifest, err = core.ReadManifest(data); err != nil {
		return fault(err)
	}
	return one
}

const tooMuch = "too much has changed at once; it is read in the next pass"

func later(a, b unix.Timespec) time.Time {
	return time.Unix(0, max(a.Nano(), b.Nano())).UTC()
}

func readAll(fd int) ([]byte, error) {
	file, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err == nil && len(data) > maxManifest {
		err = fmt.Errorf("it has grown beyond %d bytes", maxManifest)
	}
	return data, err
}

const probeName = ".ebbtide-probe"

// probe tests whether files can be created and renamed, until that works, and again when the folder
// changes.
func (f *Folder) probe(stat unix.Stat_t) error {
	readOnly := unix.Access(f.path, unix.W_OK)
	if readOnly == nil && f.probeFault == nil && f.probed.Ino == stat.Ino && f.probed.Dev == stat.Dev {
		return nil
	}
	f.probed, f.probeFault = stat, readOnly
	if readOnly == nil {
		f.probeFault = f.tryRename()
	}
	return f.probeFault
}

func (f *Folder) tryRename() error {
	from, to := filepath.Join(f.path, probeName), filepath.Join(f.path, probeName+"-renamed")
	_, _ = os.Remove(from), os.Remove(to)
	made, err := os.OpenFile(from, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_ = made.Close()
	if err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE); err != nil {
		_ = os.Remove(from)
		return fmt.Errorf("rename %s: %w", from, err)
	}
	return os.Remove(to)
}

// Hold puts a manifest aside, and replaces what is in its place if the move says so. After an error
// the manifest is at one of both places.
func (f *Folder) Hold(m core.Move) error { return f.rename(m) }

// Restore puts a manifest back, or out of the way, and never replaces a file. Its errors are like
// those of Hold.
func (f *Folder) Restore(m core.Move) error {
	m.Over = false
	return f.rename(m)
}

func (f *Folder) rename(m core.Move) error {
	flags := uint(unix.RENAME_NOREPLACE)
	if m.Over {
		flags = 0
	}
	from, to := filepath.Join(f.path, m.From), filepath.Join(f.path, m.To)
	if err := f.calls.Call("renameat2", func() error {
		return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
	}); err != nil {
		return err
	}
	return disk.SyncDir(f.calls, f.path)
}
