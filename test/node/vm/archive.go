package main

import (
	"bytes"
	"fmt"
)

// archive is an initial file system in the format newc of cpio, as initramfs-buffer-format.rst
// of the kernel has it.
type archive struct {
	bytes.Buffer
	entries int
}

const (
	executable = 0o100755
	align      = 4
)

func (a *archive) add(name string, data []byte) {
	a.entries++
	mode := executable
	if name == trailer {
		mode = 0
	}
	// ino, mode, uid, gid, nlink, mtime, filesize, maj, min, rmaj, rmin, namesize, check
	fmt.Fprintf(a, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.entries, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	a.WriteString(name + "\x00")
	a.pad()
	a.Write(data)
	a.pad()
}

// trailer is the name of the last entry.
const trailer = "TRAILER!!!"

func (a *archive) end() []byte {
	a.add(trailer, nil)
	return a.Bytes()
}

func (a *archive) pad() {
	for a.Len()%align != 0 {
		a.WriteByte(0)
	}
}
