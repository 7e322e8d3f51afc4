// Package image builds container images of static binaries: one layer with the program and its
// files, without a shell and with nothing to write to. The same input gives the same digest: all
// times are the epoch and nothing is read from the machine. A program that needs a dynamic
// linker or another platform is refused.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User of the programs, without rights on a node. It is a number, so that runAsNonRoot needs no
// /etc/passwd.
const User = "65532:65532"

// Platform of a program, in Go's words.
type Platform struct{ OS, Architecture string }

// The platforms of nodes that we make images for.
var (
	AMD64 = Platform{"linux", "amd64"}
	ARM64 = Platform{"linux", "arm64"}
)

// String is the platform as container tools write it, such as linux/amd64.
func (p Platform) String() string { return p.OS + "/" + p.Architecture }

// Image is a program to be put into an image.
type Image struct {
	// Name with a tag, such as ghcr.io/ebbtide/ebbtide:0.1.0.
	Name string
	// Program is the path of the binary in the image, which is its entrypoint. Defaults to
	// a slash and the last element of the name, such as /ebbtide.
	Program string
	// Binaries are the static executables on disk, one for each platform.
	Binaries map[Platform]string
	// Further are programs that are there, too, by their absolute path in the image: their
	// binaries, one for each platform of Binaries.
	Further map[string]map[Platform]string
	// Files are further files that can only be read, by their absolute path in the image.
	Files map[string][]byte
	// Labels say what the image is, such as org.opencontainers.image.licenses.
	Labels map[string]string
}

// build makes the image for one platform.
func (i Image) build(p Platform) (v1.Image, error) {
	binary, ok := i.Binaries[p]
	if !ok {
		return nil, fmt.Errorf("image %s: there is no binary for %s", i.Name, p)
	}
	program := cmp.Or(i.Program, "/"+i.shortName())
	programs := map[string][]byte{}
	var err error
	if programs[program], err = readStatic(binary, p); err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Name, err)
	}
	for name, binaries := range i.Further {
		if _, twice := programs[name]; twice {
			return nil, fmt.Errorf("image %s: two programs are %s", i.Name, name)
		}
		if programs[name], err = readStatic(binaries[p], p); err != nil {
			return nil, fmt.Errorf("image %s: program %s: %w", i.Name, name, err)
		}
	}
	archive, err := i.archive(programs)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Name, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Name, err)
	}
	scratch := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(scratch, layer)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Name, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", i.Name, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.OS, p.Architecture
	config.Config = v1.Config{Entrypoint: []string{program}, User: User, WorkingDir: "/", Labels: i.Labels}
	return mutate.ConfigFile(image, config)
}

// readStatic reads a binary that runs on a platform without anything else.
func readStatic(binary string, p Platform) ([]byte, error) {
	if binary == "" {
		return nil, fmt.Errorf("there is no binary for %s", p)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	if err := checkStatic(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", binary, err)
	}
	return data, nil
}

// shortName is the last element of the name, without tag.
func (i Image) shortName() string {
	name, _, _ := strings.Cut(path.Base(i.Name), ":")
	return name
}

// archive is the layer: the programs and the files, in the order of their paths, with the
// folders that lead to them.
func (i Image) archive(programs map[string][]byte) ([]byte, error) {
	files := maps.Clone(i.Files)
	if files == nil {
		files = map[string][]byte{}
	}
	for program, binary := range programs {
		if _, twice := files[program]; twice {
			return nil, fmt.Errorf("the program and a file are both %s", program)
		}
		files[program] = binary
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	folders := map[string]bool{"/": true}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !path.IsAbs(name) || path.Clean(name) != name || name == "/" {
			return nil, fmt.Errorf("%q is no absolute path of a file", name)
		}
		mode := int64(0o444)
		if _, runs := programs[name]; runs {
			mode = 0o555
		}
		if err := errors.Join(addFolders(w, folders, path.Dir(name)), addFile(w, name, mode, files[name])); err != nil {
			return nil, fmt.Errorf("add %s: %w", name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// addFolders adds a folder and those above it, each once.
func addFolders(w *tar.Writer, known map[string]bool, folder string) error {
	if known[folder] {
		return nil
	}
	known[folder] = true
	if err := addFolders(w, known, path.Dir(folder)); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder[1:] + "/", Mode: 0o555, ModTime: time.Unix(0, 0)})
}

// addFile adds a file of root's that every user can read and none can write.
func addFile(w *tar.Writer, name string, mode int64, data []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name[1:], Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0)}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}
