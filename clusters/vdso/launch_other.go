//go:build !amd64

package vdso

import (
	"fmt"
	"io"
	"runtime"
)

// errArch is the error of every attempt on this architecture.
var errArch = fmt.Errorf("the vDSO can be patched on amd64 only, and this is %s", runtime.GOARCH)

// Exec fails on this architecture.
func Exec(string, []string) error { return errArch }

// Trace fails on this architecture.
func Trace(io.Reader, io.Writer) error { return errArch }
