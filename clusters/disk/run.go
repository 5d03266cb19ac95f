package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Run mounts the disk, runs a server on it, and returns its exit code. If the power was lost, the folder then
// contains only what was durable. It needs /dev/fuse and the right to mount.
func Run(c Config, server []string) (int, error) {
	if err := nameProcess(); err != nil {
		return 0, err
	}
	orders, err := c.Switch.listen()
	if err != nil {
		return 0, err
	}
	defer orders.Close()
	command, err := serverCommand(c.User, server)
	if err != nil {
		return 0, err
	}
	cache := newCache()
	unmount, err := mount(c.Folder, cache)
	if err != nil {
		return 0, fmt.Errorf("the disk cannot be mounted over %s: %w", c.Folder, err)
	}
	defer unmount()
	done := make(chan struct{})
	defer close(done)
	go cache.writeBackUntil(done)
	var off atomic.Bool
	go c.Switch.serve(orders, func(order string) bool { return c.obey(order, cache, &off) })
	code, err := exitOf(command)
	if err != nil {
		return code, err
	}
	if err := c.Switch.writeCondition(Condition{Met: cache.faults.tally(), Ended: true}); err != nil {
		return code, err
	}
	if off.Load() {
		report, err := cache.powerOff(c.Folder)
		if err == nil {
			err = c.Switch.writeReport(report)
		}
		if err != nil {
			return code, fmt.Errorf("loss of power: %w", err)
		}
	}
	return code, nil
}

// obey carries out an order, and says whether it could.
func (c Config) obey(order string, cache *cache, off *atomic.Bool) bool {
	fault, isFault := strings.CutPrefix(order, orderFault)
	switch {
	case isFault:
		var next Fault
		if json.Unmarshal([]byte(fault), &next) != nil {
			return false
		}
		cache.faults.set(next)
	case order == orderOff, order == orderOn:
		off.Store(order == orderOff)
	case order == orderSync:
		cache.writeBack(time.Now())
	case order == orderCheck:
		write, sync := probe(c.Folder)
		return c.Switch.writeCondition(Condition{Met: cache.faults.tally(), Write: write, Sync: sync}) == nil
	default:
		return false
	}
	return true
}

// mount mounts a disk over a folder. The folder below stays reachable by its descriptor.
func mount(folder string, cache *cache) (unmount func(), err error) {
	below, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	root, err := newRoot(fmt.Sprintf("/proc/self/fd/%d", below), cache)
	if err != nil {
		return nil, err
	}
	server, err := fusefs.Mount(folder, root, &fusefs.Options{MountOptions: fuse.MountOptions{
		AllowOther: true, DirectMountStrict: true, FsName: "lockcheck-disk", Name: "lockcheck",
		Options: []string{"default_permissions"},
	}})
	if err != nil {
		return nil, err
	}
	if err := keepOpenFiles(); err != nil {
		return nil, errors.Join(err, server.Unmount())
	}
	// A process of the server may still be about to end, and then the container's end removes the mount.
	return func() { _ = server.Unmount() }, nil
}

// keepOpenFiles keeps the open files of this process from its children. go-fuse opens /dev/fuse without O_CLOEXEC. A
// server that inherits it keeps the mount alive after this process dies, and waits for answers for ever.
func keepOpenFiles() error {
	files, err := os.ReadDir("/proc/self/fd")
	for _, file := range files {
		if fd, err := strconv.Atoi(file.Name()); err == nil && fd > int(os.Stderr.Fd()) {
			syscall.CloseOnExec(fd)
		}
	}
	return err
}

// serverCommand is the command of a server that runs as a user.
func serverCommand(as string, server []string) (*exec.Cmd, error) {
	command := exec.Command(server[0], server[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if as == "" {
		return command, nil
	}
	credential, home, err := credentialOf(as)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	command.Env = append(os.Environ(), "HOME="+home) // as the engine sets it for the user of an image
	return command, err
}

// credentialOf resolves a Dockerfile's USER: a user, and perhaps a group behind a colon, by name or by number. Without
// a group the user has all of its groups, as with the engine.
func credentialOf(as string) (credential *syscall.Credential, home string, err error) {
	name, group, _ := strings.Cut(as, ":")
	known, err := user.Lookup(name)
	if err != nil {
		known, err = user.LookupId(name)
	}
	if err != nil {
		known = &user.User{Uid: name, Gid: "0", HomeDir: "/"} // a number needs no entry
	}
	var groups []string
	if group == "" {
		groups, _ = known.GroupIds() // none for a number without an entry
	} else {
		known.Gid = group
		if found, err := user.LookupGroup(group); err == nil {
			known.Gid = found.Gid
		}
	}
	var ids []uint32
	for _, text := range append([]string{known.Uid, known.Gid}, groups...) {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, "", fmt.Errorf("user %q of the image: %w", as, err)
		}
		ids = append(ids, uint32(id))
	}
	return &syscall.Credential{Uid: ids[0], Gid: ids[1], Groups: ids[2:]}, known.HomeDir, nil
}

// exitOf runs a server to its end and returns its exit code, as a shell does. The server does not get the right to
// mount, which containers of servers have for the disk only.
func exitOf(server *exec.Cmd) (int, error) {
	runtime.LockOSThread() // a child has the bounding set of the thread that starts it
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0); err != nil {
		return 0, err
	}
	err := server.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, err
	}
	const signalled = 128
	if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
		return signalled + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// writeBackUntil writes back old data as often as the kernel does (dirty_writeback_centisecs).
func (c *cache) writeBackUntil(done <-chan struct{}) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			c.writeBack(now.Add(-WriteBack))
		}
	}
}

// powerOff loses what is not durable, and returns it with paths relative to the disk's folder.
func (c *cache) powerOff(folder string) (Report, error) {
	losses, err := c.lose()
	for i := range losses {
		losses[i].File = strings.TrimPrefix(losses[i].File, folder+"/")
	}
	slices.SortFunc(losses, func(a, b Loss) int { return strings.Compare(a.File, b.File) })
	return Report{Writes: c.writes, Losses: losses}, err
}
