package vdso

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/clients/unixrpc"
	"lockcheck/internal/processes"
)

// TimeMethod is the method by which a process tells its wall clock on a Unix socket.
const TimeMethod = "time"

// told is a wall clock in ns since 1970; 0 for true time.
type told struct {
	Now int64 `json:"now"`
}

// TellTime handles TimeMethod. If trueTime is not nil and returns true, the answer is true time.
func TellTime(trueTime func() bool) http.HandlerFunc {
	return unixrpc.Method(func(struct{}) told {
		if trueTime != nil && trueTime() {
			return told{}
		}
		return told{Now: time.Now().UnixNano()}
	})
}

// Ask asks the process behind a socket for its wall clock. This process must have true time.
func Ask(ctx context.Context, socket string) (time.Time, error) {
	client := unixrpc.NewClient(socket)
	defer client.Close()
	var answer told
	err := client.Call(ctx, TimeMethod, struct{}{}, &answer)
	if err == nil && answer.Now == 0 {
		return time.Now(), nil
	}
	return time.Unix(0, answer.Now), err
}

// TrueTimeBelow says whether any descendant of this process has true time. A launched program has the clock file mapped,
// and a program that it executes has not. Copies of lockcheck itself do not count.
func TrueTimeBelow() bool {
	launcher := strings.Split(os.Getenv(processes.LauncherVariable), "\n")
	at := slices.Index(launcher, clockFileFlag)
	self, err := os.Readlink("/proc/self/exe")
	descendants, listErr := processes.Descendants(os.Getpid())
	if at < 0 || err != nil || listErr != nil {
		return true
	}
	return slices.ContainsFunc(descendants, func(pid int) bool {
		folder := "/proc/" + strconv.Itoa(pid)
		program, err := os.Readlink(folder + "/exe")
		if err != nil || program == self {
			return false // it has ended, or is about to execute the client
		}
		mapped, err := os.ReadFile(folder + "/maps")
		return !errors.Is(err, fs.ErrNotExist) && !bytes.Contains(mapped, []byte(launcher[at+1]))
	})
}
