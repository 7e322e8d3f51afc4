package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"ebbtide.dev/ebbtide/internal/image"
)

const (
	// completer completes the arguments of the plugin for kubectl.
	completer = "kubectl_complete-ebbtide"
	// krewFile is the manifest of the plugin; krew wants it called like the plugin.
	krewFile = manager + ".yaml"
)

// krewPlugin is a Plugin of krew.googlecontainertools.github.com/v1alpha2, as far as we
// fill it. Krew's own types would bring its dependencies.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Caveats          string         `json:"caveats"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
	Files    []krewFiles  `json:"files"`
	Selector krewSelector `json:"selector"`
}

type krewFiles struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

const (
	krewDescription = `Shows beforehand what a drain of nodes would do and what would block it, drains
nodes, follows them, says of a pod, a node or a budget why it waits and what would
help, and gives the nodes back.

plan, why and lint work on any cluster and write nothing. The other verbs need
Ebbtide in the cluster.
`
	krewCaveats = `To have kubectl complete the plugin's arguments (Linux, macOS):
  ln -s "${KREW_ROOT:-$HOME/.krew}/store/ebbtide/v%s/` + completer + `" "${KREW_ROOT:-$HOME/.krew}/bin/"
`
)

// krew writes the manifest by which krew installs the plugin, of the archives that are
// there already.
func (r *release) krew() error {
	p := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": manager},
		Spec: krewSpec{
			Version: "v" + r.version, Homepage: r.home, ShortDescription: "Preview, drive, follow and explain drains of nodes",
			Description: krewDescription, Caveats: fmt.Sprintf(krewCaveats, r.version),
		},
	}
	for _, platform := range r.programs[plugin] {
		data, err := os.ReadFile(r.path(r.archive(plugin, platform)))
		if err != nil {
			return err
		}
		p.Spec.Platforms = append(p.Spec.Platforms, krewPlatform{
			URI:      fmt.Sprintf("%s/releases/download/v%s/%s", r.home, r.version, r.archive(plugin, platform)),
			SHA256:   fmt.Sprintf("%x", sha256.Sum256(data)),
			Bin:      executable(plugin, platform),
			Files:    filesOf(platform),
			Selector: krewSelector{MatchLabels: map[string]string{"os": platform.OS, "arch": platform.Architecture}},
		})
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path(krewFile), text, 0o644)
}

// filesOf returns the files that krew takes from the archive for a platform.
func filesOf(p image.Platform) []krewFiles {
	names := []string{executable(plugin, p), "LICENSE", "THIRD-PARTY-LICENSES"}
	if completes(p) {
		names = append(names, completer)
	}
	files := make([]krewFiles, len(names))
	for n, name := range names {
		files[n] = krewFiles{From: name, To: "."}
	}
	return files
}

// completes returns true where the completer, which is a shell script, works.
func completes(p image.Platform) bool { return p.OS != "windows" }

// completion is the completer, where it goes with a program.
func (r *release) completion(program string, p image.Platform) ([]entry, error) {
	if program != plugin || !completes(p) {
		return nil, nil
	}
	script, err := os.ReadFile(filepath.Join(r.root, "cmd", plugin, completer))
	return []entry{{name: completer, data: script, program: true}}, err
}
