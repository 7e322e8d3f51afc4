//go:build linux

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	core "ebbtide.dev/ebbtide/internal/core/nodeagent"
)

// Restore restores every manifest of a folder regardless of the API, and prints each. It is for
// nodes whose agent does not return. It fails if the folder does not exist or a manifest could not
// be restored.
func Restore(path string, tell func(line string)) error {
	f := NewFolder(path)
	list := f.List()
	switch {
	case list.Absent:
		return fmt.Errorf("there is no folder %s: set --manifest-dir to the kubelet's staticPodPath", path)
	case !list.Known:
		return errors.New(list.Message)
	}
	slices.SortFunc(list.Files, func(a, b core.File) int { return cmp.Compare(a.Name, b.Name) })
	found, failed := 0, 0
	for _, one := range list.Files {
		file, held := core.HeldFile(one.Name)
		if !held {
			continue
		}
		found++
		err := f.Restore(core.Move{File: file, From: one.Name, To: file})
		switch {
		case err == nil:
			tell(file + " is back.")
			continue
		case errors.Is(err, fs.ErrExist):
			err = fmt.Errorf("there is a %s already: compare it with %s, and remove one", file, one.Name)
		}
		failed++
		tell(fmt.Sprintf("%s is not back: %v", file, err))
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d manifests are not back", failed, found)
	}
	if found == 0 {
		tell("No manifest in " + path + " is put aside.")
	}
	return nil
}
