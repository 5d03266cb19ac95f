package disk

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// node is a file or folder of a disk. It passes everything on to the folder below, and tells the cache what changes a
// file's data or makes it durable.
type node struct {
	*fs.LoopbackNode
	cache *cache
}

var (
	_ fs.NodeWrapChilder    = (*node)(nil)
	_ fs.NodeOpener         = (*node)(nil)
	_ fs.NodeCreater        = (*node)(nil)
	_ fs.NodeSetattrer      = (*node)(nil)
	_ fs.NodeRenamer        = (*node)(nil)
	_ fs.NodeUnlinker       = (*node)(nil)
	_ fs.NodeTmpfiler       = (*node)(nil)
	_ fs.NodeCopyFileRanger = (*node)(nil)
)

// newRoot is the root of a disk over a folder.
func newRoot(folder string, cache *cache) (*node, error) {
	root, err := fs.NewLoopbackRoot(folder)
	if err != nil {
		return nil, err
	}
	return &node{root.(*fs.LoopbackNode), cache}, nil
}

// WrapChild implements fs.NodeWrapChilder.
func (n *node) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{child.(*fs.LoopbackNode), n.cache}
}

// path is where the node is in the folder below.
func (n *node) path() string { return filepath.Join(n.RootData.Path, n.Path(n.Root())) }

// Open implements fs.NodeOpener.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	below, options, errno := n.LoopbackNode.Open(ctx, flags&^syscall.O_DIRECT)
	if errno != 0 {
		return nil, 0, errno
	}
	handle, errno := n.handle(below, n.path(), flags)
	return handle, options, errno
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (inode *fs.Inode, h fs.FileHandle, options uint32, errno syscall.Errno) {
	errno = n.cache.name(func() syscall.Errno {
		inode, h, options, errno = n.LoopbackNode.Create(ctx, name, flags&^syscall.O_DIRECT, mode, out)
		return errno
	})
	if errno != 0 {
		return nil, nil, 0, errno
	}
	h, errno = n.handle(h, name, flags)
	return inode, h, options, errno
}

// handle adds to an open file what the cache needs if it may be written.
func (n *node) handle(below fs.FileHandle, name string, flags uint32) (fs.FileHandle, syscall.Errno) {
	h := &handle{
		LoopbackFile: below.(*fs.LoopbackFile), cache: n.cache, synced: flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0,
		counted: filepath.Base(name) != probeName,
	}
	if flags&syscall.O_ACCMODE == syscall.O_RDONLY {
		return h, 0
	}
	fd, _ := h.LoopbackFile.PassthroughFd()
	var err error
	if h.file, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDWR, 0); err != nil {
		_ = h.LoopbackFile.Release(context.Background())
		return nil, errno(err)
	}
	return h, 0
}

// Setattr implements fs.NodeSetattrer. It may change the file's size.
func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	set := func() syscall.Errno { return n.LoopbackNode.Setattr(ctx, f, in, out) }
	size, resizes := in.GetSize()
	if !resizes {
		return set()
	}
	file, end, err := n.writable(f)
	if err != nil {
		return errno(err)
	}
	defer end()
	number := n.cache.change(file, int64(size), math.MaxInt64, set)
	if number == 0 && size == 0 {
		n.cache.emptied(out.Ino)
	}
	return number
}

// writable returns the node's file, open for reading and writing, and what to call when it is no longer used. An
// open file may have no name any more.
func (n *node) writable(f fs.FileHandle) (*os.File, func(), error) {
	if h, is := f.(*handle); is && h.file != nil {
		return h.file, func() {}, nil
	}
	file, err := os.OpenFile(n.path(), os.O_RDWR, 0)
	return file, func() { _ = file.Close() }, err
}

// Rename implements fs.NodeRenamer. The renamed file becomes durable, as on ext4 (auto_da_alloc).
func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	var stat syscall.Stat_t
	if err := syscall.Lstat(filepath.Join(n.path(), name), &stat); err != nil {
		return errno(err)
	}
	return n.cache.rename(stat.Ino, func() syscall.Errno { return n.LoopbackNode.Rename(ctx, name, parent, newName, flags) })
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.cache.name(func() syscall.Errno { return n.LoopbackNode.Unlink(ctx, name) })
}

// Tmpfile implements fs.NodeTmpfiler. Programs then make a file with a name.
func (n *node) Tmpfile(context.Context, uint32, uint32, *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, syscall.ENOSYS
}

// CopyFileRange implements fs.NodeCopyFileRanger. The kernel then copies by reads and writes.
func (n *node) CopyFileRange(context.Context, fs.FileHandle, uint64, *fs.Inode, fs.FileHandle, uint64, uint64, uint64) (uint32, syscall.Errno) {
	return 0, syscall.ENOSYS
}

// handle is an open file of a disk.
type handle struct {
	*fs.LoopbackFile
	cache  *cache
	file   *os.File // open for reading and writing; nil if the handle only reads
	synced bool     // each write is durable before it is answered
	// counted: its operations are the server's, and not those of a probe.
	counted bool
}

var (
	_ fs.FileWriter          = (*handle)(nil)
	_ fs.FileWritever        = (*handle)(nil)
	_ fs.FileFsyncer         = (*handle)(nil)
	_ fs.FileAllocater       = (*handle)(nil)
	_ fs.FileReleaser        = (*handle)(nil)
	_ fs.FileIoctler         = (*handle)(nil)
	_ fs.FilePassthroughFder = (*handle)(nil)
)

// Write implements fs.FileWriter.
func (h *handle) Write(_ context.Context, data []byte, at int64) (uint32, syscall.Errno) {
	if h.file == nil {
		return 0, syscall.EBADF
	}
	if number := h.space(at, at+int64(len(data))); number != 0 {
		return 0, number
	}
	written := 0
	number := h.cache.change(h.file, at, at+int64(len(data)), func() syscall.Errno {
		var err error
		written, err = h.file.WriteAt(data, at)
		return errno(err)
	})
	if number == 0 && h.synced {
		number = h.durable()
	}
	return uint32(written), number
}

// Writev implements fs.FileWritever.
func (h *handle) Writev(ctx context.Context, parts [][]byte, at int64) (uint32, syscall.Errno) {
	return h.Write(ctx, bytes.Join(parts, nil), at)
}

// Fsync implements fs.FileFsyncer, for fdatasync as well.
func (h *handle) Fsync(context.Context, uint32) syscall.Errno { return h.durable() }

// space fails or delays a write between two offsets as the disk's fault demands.
func (h *handle) space(from, to int64) syscall.Errno {
	return h.cache.faults.write(h.counted, func() bool { return needsSpace(h.file, from, to) })
}

// durable syncs the file below, so that a sync takes its time, and then the cache.
func (h *handle) durable() syscall.Errno {
	if number := h.cache.faults.sync(h.counted); number != 0 {
		return number
	}
	var out fuse.AttrOut
	if number := h.LoopbackFile.Getattr(context.Background(), &out); number != 0 {
		return number
	}
	if number := h.LoopbackFile.Fsync(context.Background(), 0); number != 0 {
		return number
	}
	h.cache.sync(out.Ino)
	return 0
}

// Allocate implements fs.FileAllocater. It may punch holes, too.
func (h *handle) Allocate(ctx context.Context, at, size uint64, mode uint32) syscall.Errno {
	if h.file == nil {
		return syscall.EBADF
	}
	if mode&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_COLLAPSE_RANGE) == 0 { // these free space
		if number := h.space(int64(at), int64(at+size)); number != 0 {
			return number
		}
	}
	return h.cache.change(h.file, int64(at), int64(at+size), func() syscall.Errno {
		return h.LoopbackFile.Allocate(ctx, at, size, mode)
	})
}

// Ioctl implements fs.FileIoctler. Some of these calls change data, such as that of a reflink.
func (h *handle) Ioctl(context.Context, uint32, uint64, []byte, []byte) (int32, syscall.Errno) {
	return 0, syscall.ENOTTY
}

// PassthroughFd implements fs.FilePassthroughFder: the kernel must not write past the disk.
func (h *handle) PassthroughFd() (int, bool) { return 0, false }

// Release implements fs.FileReleaser.
func (h *handle) Release(ctx context.Context) syscall.Errno {
	if h.file != nil {
		if stat, err := statOf(h.file); err == nil {
			h.cache.closed(stat.Ino)
		}
		_ = h.file.Close() // nothing is buffered in it
	}
	return h.LoopbackFile.Release(ctx)
}
