package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"ebbtide.dev/ebbtide/charts"
)

// entry is a file in an archive. All have the same time and no owner.
type entry struct {
	name    string
	data    []byte
	program bool
}

func (e entry) mode() fs.FileMode {
	if e.program {
		return 0o755
	}
	return 0o644
}

// earliest is the first time that a zip can hold, and good enough for all.
var earliest = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// write writes an archive.
func (r *release) write(name string, files []entry, pack func(io.Writer, []entry) error) (err error) {
	f, err := os.Create(r.path(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pack(f, files); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func writeTar(w io.Writer, files []entry) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, file := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: file.name, Mode: int64(file.mode()), Size: int64(len(file.data)), ModTime: earliest}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(file.data); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

func writeZip(w io.Writer, files []entry) error {
	archive := zip.NewWriter(w)
	for _, file := range files {
		header := &zip.FileHeader{Name: file.name, Method: zip.Deflate, Modified: earliest}
		header.SetMode(file.mode())
		inner, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := inner.Write(file.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// packageChart makes what helm install takes.
func (r *release) packageChart() error {
	var files []entry
	err := fs.WalkDir(charts.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := charts.Files.ReadFile(name)
		files = append(files, entry{name: path.Clean(name), data: data})
		return err
	})
	if err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	return r.write("ebbtide-"+r.version+".tgz", files, writeTar)
}

// sums writes what sha256sum --check reads, of every file beside it.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var sums []byte
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == sumsFile {
			continue
		}
		data, err := os.ReadFile(r.path(e.Name()))
		if err != nil {
			return err
		}
		sums = fmt.Appendf(sums, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(r.path(sumsFile), sums, 0o644)
}

const sumsFile = "SHA256SUMS"
