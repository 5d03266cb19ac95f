package vdso

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strings"
)

// image is the vDSO of a process.
type image struct {
	base      uint64
	functions map[string]uint64 // addresses of the replaced functions
	syscall   uint64            // address of a syscall instruction
}

// findVDSO finds the vDSO in a process' /proc/PID/maps.
func findVDSO(maps io.Reader) (from, to uint64, err error) {
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		if !strings.HasSuffix(lines.Text(), "[vdso]") {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err != nil {
			return 0, 0, fmt.Errorf("maps: %q: %w", lines.Text(), err)
		}
		return from, to, nil
	}
	if err := lines.Err(); err != nil {
		return 0, 0, fmt.Errorf("maps: %w", err)
	}
	return 0, 0, errors.New("the process has no vDSO")
}

// parse reads the content of a vDSO that is mapped at base.
func parse(content []byte, base uint64) (image, error) {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return image{}, fmt.Errorf("vDSO: %w", err)
	}
	if file.Machine != elf.EM_X86_64 || file.Class != elf.ELFCLASS64 {
		return image{}, fmt.Errorf("vDSO: of %s, %s: only 64-bit programs for amd64 can be launched", file.Machine, file.Class)
	}
	found := image{base: base, functions: make(map[string]uint64)}
	linked, code, err := text(file)
	if err != nil {
		return image{}, err
	}
	at := bytes.Index(code, []byte{0x0f, 0x05})
	if at < 0 {
		return image{}, errors.New("vDSO: no syscall instruction")
	}
	found.syscall = base + linked + uint64(at)
	return found, found.find(file)
}

// text returns the executable segment of a vDSO and its offset from the base.
func text(file *elf.File) (at uint64, code []byte, err error) {
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_LOAD && segment.Flags&elf.PF_X != 0 && segment.Vaddr == segment.Off {
			code, err := io.ReadAll(segment.Open())
			return segment.Vaddr, code, err
		}
	}
	return 0, nil, errors.New("vDSO: no code where it is expected")
}

// find looks up all functions to be replaced. The kernel has had them under these names since 2.6.
func (i image) find(file *elf.File) error {
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("vDSO: %w", err)
	}
	for _, symbol := range symbols {
		if _, wanted := replacements[symbol.Name]; !wanted {
			continue
		}
		if need := uint64(len(jump(0))); symbol.Size < need {
			return fmt.Errorf("vDSO: %s has %d bytes, no space for %d", symbol.Name, symbol.Size, need)
		}
		i.functions[symbol.Name] = i.base + symbol.Value
	}
	for name := range replacements {
		if i.functions[name] == 0 {
			return fmt.Errorf("vDSO: no function %s", name)
		}
	}
	return nil
}
