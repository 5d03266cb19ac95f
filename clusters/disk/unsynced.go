// Package disk is the disk of a server that can lose power, and have other faults (see Fault). It is a FUSE file system
// over the server's data folder.
// All writes reach the folder at once, as they reach the page cache of a kernel. The disk remembers what the folder
// contained before the writes that no fsync has followed, and brings that back when the power is lost.
//
// It is modelled on ext4 with its default options. Names of files (create, rename, remove) are durable at once. A
// rename, and the closing of a file that was truncated to nothing, make the file's data durable. Data that has been
// dirty for WriteBack is written back (see auto_da_alloc in
// https://www.kernel.org/doc/Documentation/filesystems/ext4/ and dirty_expire_centisecs in
// https://docs.kernel.org/admin-guide/sysctl/vm.html). The disk sees fsync, fdatasync, O_SYNC and O_DSYNC, but not
// sync(2) and syncfs(2), which the kernel does not pass on to it. A disk whose server was killed and started again
// takes everything that it finds for durable.
package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// WriteBack is how long the kernel keeps unsynced data before it writes the data back by itself. It is the kernel's
// default of dirty_expire_centisecs.
const WriteBack = 30 * time.Second

// page is the unit in which overwritten data is remembered, in bytes.
const page = 4096

// Loss is what one file loses with the power.
type Loss struct {
	File string `json:"file"`
	// Bytes counts the bytes that differ from those before the loss, including bytes past the new end.
	Bytes int64 `json:"bytes"`
	// Size is the file's size after the loss, in bytes.
	Size int64 `json:"size"`
}

// Report is what a disk did from the start of its server to the loss of power.
type Report struct {
	Writes int64  `json:"writes"` // changes of the data of files
	Losses []Loss `json:"losses"`
}

// unsynced is what a file would contain if the power were lost now.
type unsynced struct {
	file  *os.File // open for reading and writing
	size  int64
	pages map[int64][]byte // contents of pages below size that were overwritten, by offset
	since time.Time        // when the first of the writes was made
	// emptied: the file was truncated to nothing, and its new contents are durable when it is closed.
	emptied bool
}

// cache knows the unsynced data of all files of a disk.
type cache struct {
	mu     sync.Mutex
	files  map[uint64]*unsynced // by inode number
	writes int64
	off    bool // the power is lost; nothing more reaches the disk
	faults *faults
}

func newCache() *cache { return &cache{files: make(map[uint64]*unsynced), faults: newFaults()} }

// change lets do change the bytes from one offset to another, after the old ones are remembered. do may also change
// the file's size. file must be open for reading and writing.
func (c *cache) change(file *os.File, from, to int64, do func() syscall.Errno) syscall.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off {
		return syscall.EIO
	}
	known, err := c.known(file)
	if err == nil {
		err = known.remember(from, to)
	}
	if err != nil {
		return errno(err)
	}
	c.writes++
	return do()
}

// rename lets do change a name. The file of that inode becomes durable first.
func (c *cache) rename(inode uint64, do func() syscall.Errno) syscall.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off {
		return syscall.EIO
	}
	c.forget(inode)
	return do()
}

// name lets do change a name.
func (c *cache) name(do func() syscall.Errno) syscall.Errno {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off {
		return syscall.EIO
	}
	return do()
}

// emptied notes that a file was truncated to nothing.
func (c *cache) emptied(inode uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.files[inode]; known != nil {
		known.emptied = true
	}
}

// closed notes that a file that could be written was closed.
func (c *cache) closed(inode uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.files[inode]; known != nil && known.emptied && !c.off {
		c.forget(inode)
	}
}

// forget makes a file's data durable.
func (c *cache) forget(inode uint64) {
	if known := c.files[inode]; known != nil {
		_ = known.file.Close() // it is a duplicate, and nothing is buffered in it
		delete(c.files, inode)
	}
}

// known returns what is remembered of a file, from now on if nothing was.
func (c *cache) known(file *os.File) (*unsynced, error) {
	stat, err := statOf(file)
	if err != nil {
		return nil, err
	}
	if known := c.files[stat.Ino]; known != nil {
		return known, nil
	}
	duplicate, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	known := &unsynced{
		file: os.NewFile(uintptr(duplicate), file.Name()), size: stat.Size,
		pages: make(map[int64][]byte), since: time.Now(),
	}
	c.files[stat.Ino] = known
	return known, nil
}

// remember keeps the pages between two offsets that are about to change for the first time.
func (u *unsynced) remember(from, to int64) error {
	for at := from / page * page; at < min(to, u.size); at += page {
		if _, kept := u.pages[at]; kept {
			continue
		}
		old := make([]byte, min(page, u.size-at))
		if _, err := u.file.ReadAt(old, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		u.pages[at] = old
	}
	return nil
}

// sync makes a file's data durable, unless the power is lost already.
func (c *cache) sync(inode uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.off {
		c.forget(inode)
	}
}

// writeBack makes durable what has been dirty since before a time.
func (c *cache) writeBack(before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for inode, known := range c.files {
		if known.since.Before(before) && !c.off {
			c.forget(inode)
		}
	}
}

// lose takes the power away: every file gets the contents back that it had at its last sync. What is lost is read
// back from the files.
func (c *cache) lose() ([]Loss, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
	var losses []Loss
	var failed error
	for _, known := range c.files {
		loss, err := known.restore()
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", known.path(), err))
		}
		if loss.Bytes > 0 {
			losses = append(losses, loss)
		}
	}
	return losses, failed
}

// restore brings the durable contents of a file back. A file that has been removed meanwhile loses nothing.
func (u *unsynced) restore() (Loss, error) {
	before, err := statOf(u.file)
	if err != nil || before.Nlink == 0 {
		return Loss{}, err
	}
	loss := Loss{File: u.path(), Bytes: max(before.Size-u.size, u.size-before.Size)}
	for at, old := range u.pages { // all of them before the first is written, which may make the file longer
		changed, err := u.differ(at, old)
		if err != nil {
			return loss, err
		}
		loss.Bytes += changed
	}
	for at, old := range u.pages {
		if _, err := u.file.WriteAt(old, at); err != nil {
			return loss, err
		}
	}
	if err := u.file.Truncate(u.size); err != nil {
		return loss, err
	}
	return loss, u.verify(&loss)
}

// differ counts the bytes of a page, as far as the file reaches, that differ from the old ones.
func (u *unsynced) differ(at int64, old []byte) (int64, error) {
	now := make([]byte, len(old))
	n, err := u.file.ReadAt(now, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	differ := int64(0)
	for i := range n {
		if now[i] != old[i] {
			differ++
		}
	}
	return differ, nil
}

// verify reads the restored file, notes its size in the loss, and returns an error if anything of what it lost is
// still there.
func (u *unsynced) verify(loss *Loss) error {
	after, err := statOf(u.file)
	if err != nil {
		return err
	}
	loss.Size = after.Size
	if after.Size != u.size {
		return fmt.Errorf("the size is %d, not %d", after.Size, u.size)
	}
	for at, old := range u.pages {
		now := make([]byte, len(old))
		if _, err := u.file.ReadAt(now, at); err != nil || !bytes.Equal(now, old) {
			return fmt.Errorf("the page at %d is still there: %w", at, err)
		}
	}
	return nil
}

func statOf(file *os.File) (stat syscall.Stat_t, err error) {
	return stat, syscall.Fstat(int(file.Fd()), &stat)
}

// errno is the number of an error of the kernel; EIO for other errors.
func errno(err error) syscall.Errno {
	var number syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &number):
		return number
	}
	return syscall.EIO
}

// path is where the file is now; "" if unknown.
func (u *unsynced) path() string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", u.file.Fd()))
	if err != nil {
		return ""
	}
	return path
}
