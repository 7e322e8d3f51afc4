package sandbox

import (
	_ "embed"
	"os"
	"path/filepath"
)

// pauseSource is a program of our own, without dependencies.
//
//go:embed pause/main.go
var pauseSource string

func pause() wrapper {
	return wrapper{
		name: "pause", source: pauseSource,
		commands: []command{{name: "pause", pkg: ".", part: ofNodes}},
	}
}

// writeSource makes dir the module of a program of our own.
func (w wrapper) writeSource(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"main.go": w.source, "go.sum": "", "go.mod": "module " + wrapperPath + w.name + "\n\ngo 1.26.0\n",
	} {
		if err := writeFile(filepath.Join(dir, file), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}
