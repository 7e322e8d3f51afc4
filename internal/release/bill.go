package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill is the bill of materials of a binary in CycloneDX: what the go command has written
// into the binary itself, and under which licence each of it is. It has no time and no
// number of its own, so that it is the same for the same binary.
func (r *release) bill(program, file string, binary []byte, found licences) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read what is in %s: %w", file, err)
	}
	ids := map[string][]string{}
	for _, l := range found {
		ids[l.module] = l.ids
	}
	parts := []cdx.Component{library(standard, strings.TrimPrefix(info.GoVersion, "go"), ids[standard])}
	for _, module := range info.Deps {
		if module.Replace != nil {
			return nil, fmt.Errorf("%s replaces %s by %s, which others do not have", file, module.Path, module.Replace.Path)
		}
		part := library(module.Path, module.Version, ids[module.Path])
		if part.Hashes, err = sumOf(module); err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	whole := library(info.Main.Path, "v"+r.version, []string{"Apache-2.0"})
	whole.Type, whole.Name, whole.Version = cdx.ComponentTypeApplication, program, r.version
	whole.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(binary))}}
	bill := cdx.NewBOM()
	bill.Metadata = &cdx.Metadata{Component: &whole}
	bill.Components = &parts
	needs := make([]string, 0, len(parts))
	for _, part := range parts {
		needs = append(needs, part.BOMRef)
	}
	bill.Dependencies = &[]cdx.Dependency{{Ref: whole.BOMRef, Dependencies: &needs}}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bill, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("write the bill of materials of %s: %w", file, err)
	}
	return text.Bytes(), nil
}

// library is a module by its package URL.
func library(module, version string, ids []string) cdx.Component {
	url := "pkg:golang/" + module + "@" + version
	under := cdx.Licenses{}
	for _, id := range ids {
		under = append(under, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return cdx.Component{
		BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: module, Version: version,
		Scope: cdx.ScopeRequired, PackageURL: url, Licenses: &under,
	}
}

// sumOf is the checksum of go.sum, which is a SHA-256 of names and contents.
func sumOf(module *debug.Module) (*[]cdx.Hash, error) {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
	if err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("module %s has no checksum (%q)", module.Path, module.Sum)
	}
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}, nil
}
