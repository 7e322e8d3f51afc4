package image

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName annotates an image of an OCI layout with its tag.
const refName = "org.opencontainers.image.ref.name"

// WriteArchive writes the image for one platform as a docker-archive, which docker load,
// podman load and ctr images import read. A file that is there already is replaced.
//
// Errors: a name without a tag or with an impossible one, no binary for the platform, a
// binary that would not run, or the disk.
func (i Image) WriteArchive(file string, p Platform) error {
	tag, err := i.tag()
	if err != nil {
		return err
	}
	image, err := i.build(p)
	if err != nil {
		return err
	}
	temporary := file + ".tmp"
	if err := tarball.WriteToFile(temporary, tag, image); err != nil {
		return errors.Join(fmt.Errorf("write image %s: %w", i.Name, err), os.Remove(temporary))
	}
	return os.Rename(temporary, file)
}

// WriteLayout writes one image for all platforms as an OCI layout into a folder that is
// not there, which skopeo copy --all oci:… and oras read, and returns the digest by which
// the image can be pinned.
//
// Errors: as those of WriteArchive, and a folder that is there already.
func (i Image) WriteLayout(dir string) (digest string, err error) {
	tag, err := i.tag()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); err == nil {
		return "", fmt.Errorf("write image %s: %s is there already", i.Name, dir)
	}
	index, err := i.index()
	if err != nil {
		return "", err
	}
	hash, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("write image %s: %w", i.Name, err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("write image %s: %w", i.Name, err)
	}
	root, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return "", fmt.Errorf("write image %s: %w", i.Name, err)
	}
	annotation := layout.WithAnnotations(map[string]string{refName: tag.TagStr()})
	if err := root.AppendIndex(index, annotation); err != nil {
		return "", fmt.Errorf("write image %s: %w", i.Name, err)
	}
	return hash.String(), nil
}

// index is the image for all platforms.
func (i Image) index() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	if len(i.Binaries) == 0 {
		return nil, fmt.Errorf("image %s: there are no binaries", i.Name)
	}
	platforms := slices.SortedFunc(maps.Keys(i.Binaries), func(a, b Platform) int { return strings.Compare(a.String(), b.String()) })
	for _, p := range platforms {
		image, err := i.build(p)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Architecture}},
		})
	}
	return index, nil
}

// tag reads the name. Without a tag it would become :latest, which says nothing.
func (i Image) tag() (name.Tag, error) {
	tag, err := name.NewTag(i.Name, name.StrictValidation)
	if err != nil {
		return name.Tag{}, fmt.Errorf("the name of an image must have a registry, a path and a tag, such as ghcr.io/ebbtide/ebbtide:0.1.0: %w", err)
	}
	return tag, nil
}
