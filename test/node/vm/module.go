package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// wanted are the modules of the kernel for the host's files, the nodes, their network, and what
// kube-proxy asks of nftables.
var wanted = []string{
	// The kernel does not name crc32c_generic as a dependency.
	"crc32c_generic", "virtio_pci", "9pnet_virtio", "9p", "overlay",
	"veth", "bridge", "br_netfilter", "nf_conntrack_netlink",
	"nf_tables", "nft_chain_nat", "nft_ct", "nft_fib_inet", "nft_limit", "nft_log", "nft_masq", "nft_nat", "nft_numgen", "nft_reject_inet", "nft_reject_ipv4", "nft_reject_ipv6", "nft_redir", "nft_hash",
}

// modules are those of a kernel.
type modules struct {
	// files are by the name of the module.
	files map[string]string
	// ordered are the files to load, each behind those that it depends on.
	ordered []string
	added   map[string]bool
}

// findModules returns the files of modules in the order in which they can be loaded. A module
// without a file is part of the kernel.
func findModules(dir string, names []string) ([]string, error) {
	m := modules{files: map[string]string{}, added: map[string]bool{}}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			m.files[strings.ReplaceAll(name, "-", "_")] = path
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := m.add(names); err != nil {
		return nil, err
	}
	return m.ordered, nil
}

// add adds modules, behind those that they depend on.
func (m *modules) add(names []string) error {
	for _, name := range names {
		name = strings.ReplaceAll(name, "-", "_")
		path, ok := m.files[name]
		if !ok || m.added[name] {
			continue
		}
		m.added[name] = true
		needs, err := dependencies(path)
		if err != nil {
			return err
		}
		if err := m.add(needs); err != nil {
			return err
		}
		m.ordered = append(m.ordered, path)
	}
	return nil
}

// dependencies are the names of modules that one says it needs.
func dependencies(path string) ([]string, error) {
	module, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = module.Close() }()
	section := module.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s has no .modinfo", path)
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	for line := range bytes.SplitSeq(data, []byte{0}) {
		if text, ok := strings.CutPrefix(string(line), "depends="); ok && text != "" {
			return strings.Split(text, ","), nil
		}
	}
	return nil, nil
}
