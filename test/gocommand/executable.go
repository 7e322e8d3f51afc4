package gocommand

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"runtime/debug"
)

const (
	// headers is the size of the ELF header and one program header.
	headers = 64 + 56
	// blob is the offset of the build information, which must be a multiple of 16.
	blob = 128
	// address is the address of the first byte in memory.
	address = 0x400000
)

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// Executable returns a static executable of Linux for an architecture as Go names it, with build
// information as the linker writes it. It has no code.
func Executable(architecture string, info *debug.BuildInfo) []byte {
	data := buildInformation(info)
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machines[architecture]), Version: uint32(elf.EV_CURRENT),
		Entry: address, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	segment := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Off: blob, Vaddr: address + blob, Paddr: address + blob,
		Filesz: uint64(len(data)), Memsz: uint64(len(data)), Align: 16,
	}
	var out bytes.Buffer
	for _, part := range []any{header, segment, make([]byte, blob-headers), data} {
		// Neither a buffer nor values of a fixed size make it fail.
		_ = binary.Write(&out, binary.LittleEndian, part)
	}
	return out.Bytes()
}

// buildInformation returns what debug/buildinfo reads: a magic number, flags that say that
// strings follow, the version of Go, and the modules between marks of 16 bytes.
func buildInformation(info *debug.BuildInfo) []byte {
	data := append([]byte("\xff Go buildinf:"), 8, 2)
	data = append(data, make([]byte, 16)...)
	mark := string(make([]byte, 16))
	for _, text := range []string{"go1.26.0", mark + info.String() + mark} {
		data = binary.AppendUvarint(data, uint64(len(text)))
		data = append(data, text...)
	}
	return data
}
