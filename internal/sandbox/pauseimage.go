package sandbox

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"ebbtide.dev/ebbtide/internal/sandbox/machine"
)

// writePauseImage writes an archive with the image that consists of the pause program, in
// the format of `docker save`. The package image does more, and with a library that the
// plugin shall not grow by.
func writePauseImage(program, archive string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	layer, err := tarOf(file{"pause", 0o755, binary})
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/pause"}, "User": "65535:65535"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": "config.json", "RepoTags": []string{machine.PauseImage}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return err
	}
	image, err := tarOf(file{"config.json", 0o644, config}, file{"layer.tar", 0o644, layer}, file{"manifest.json", 0o644, manifest})
	if err != nil {
		return err
	}
	return os.WriteFile(archive, image, 0o600)
}

type file struct {
	name string
	mode int64
	data []byte
}

func tarOf(files ...file) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buffer.Bytes(), err
}
