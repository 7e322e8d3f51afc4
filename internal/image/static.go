package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
)

// machines are the architectures by what an executable says of itself.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkStatic refuses what would not start in an image that has nothing else: the kernel
// would say "exec format error", or that a file is not there, which means the linker.
func checkStatic(binary []byte, p Platform) error {
	machine, ok := machines[p.Architecture]
	if !ok || p.OS != "linux" {
		return fmt.Errorf("no images are made for %s, only for %s and %s", p, AMD64, ARM64)
	}
	file, err := elf.NewFile(bytes.NewReader(binary))
	if err != nil {
		return errors.New("is no executable of Linux")
	}
	if file.Machine != machine {
		return fmt.Errorf("is for %s and not for %s", file.Machine, p)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("needs a dynamic linker, which the image has not: build it with CGO_ENABLED=0")
		}
	}
	return nil
}
