package replica

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"lockcheck/history"
)

const (
	// blockSize is the smallest block in which programs buffer what they print into a pipe: that of the C library of
	// Alpine. That of GNU has 4,096 bytes, Perl 8,192.
	blockSize = 1 << 10
	// maxLine bounds a line, in bytes.
	maxLine = 64 << 10
	// maxOutput bounds what is read before it is looked at, in bytes.
	maxOutput = 256 << 10
)

// stream is an output of a program: the end of a pipe from which we read.
type stream struct {
	file   *os.File
	fd     int
	buffer []byte
	closed bool // nobody can write any more

	// empty is before an instant at which the pipe was empty: what is read next was written afterwards.
	empty int64
	// before is what empty was for the output before, and block says whether that was a block.
	before int64
	block  bool
	size   int   // of the present output, as far as it was read
	from   int64 // of the lines in it

	partial []byte // a line that has not ended
	long    bool   // it was longer than maxLine: what comes until its end is no line
}

// line is one of a program. It was printed after from and before time.
type line struct {
	text       []byte
	from, time int64
	long       bool // its text is left out
}

// newStream makes a pipe. Its other end is that of a program, to be closed once the program has it.
func newStream() (*stream, *os.File, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	// It is not one of the runtime's poller, which would not say when the pipe was empty.
	s := &stream{file: os.NewFile(uintptr(ends[0]), "output"), fd: ends[0], buffer: make([]byte, maxLine)}
	end := os.NewFile(uintptr(ends[1]), "output")
	if err := unix.SetNonblock(s.fd, true); err != nil {
		return nil, nil, errors.Join(err, s.file.Close(), end.Close())
	}
	s.empty = history.Now()
	s.before = s.empty
	return s, end, nil
}

// read returns what there is, and the lines that end in it, without waiting.
func (s *stream) read() (output []byte, lines []line) {
	began, time, drained := s.empty, s.empty, false
	for !drained && !s.closed && len(output) < maxOutput {
		asked := history.Now()
		n, err := unix.Read(s.fd, s.buffer)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			// Not the present time: this process may have been stopped since, and not the program.
			s.empty, drained = asked, true
		case err != nil || n == 0:
			s.closed = true
		default:
			output, time = append(output, s.buffer[:n]...), history.Now()
		}
	}
	s.size += len(output)
	if len(output) > 0 {
		lines = s.split(output, began, time)
	}
	if drained && s.size > 0 {
		s.before, s.size = began, 0
	}
	return output, lines
}

// split returns the lines that end in an output.
func (s *stream) split(output []byte, from, time int64) (lines []line) {
	whole := s.size == len(output) && len(s.partial) == 0 && !s.long && bytes.IndexByte(output, '\n') == len(output)-1
	// One line that was written as it is was in no buffer together with others.
	block := s.size >= blockSize && !whole
	if block || s.block {
		from = s.before
	}
	s.block, s.from = block, from
	for {
		text, rest, ended := bytes.Cut(output, []byte{'\n'})
		if !s.long {
			s.partial = append(s.partial, text...)
		}
		if len(s.partial) > maxLine {
			s.partial, s.long = s.partial[:0], true
			lines = append(lines, line{from: from, time: time, long: true})
		}
		if !ended {
			return lines
		}
		if !s.long {
			lines = append(lines, line{text: bytes.Clone(trimmed(s.partial)), from: from, time: time})
		}
		s.partial, s.long, output = s.partial[:0], false, rest
	}
}

// last returns the line that a program had not ended when it ended itself, if there is one.
func (s *stream) last() []line {
	if len(s.partial) == 0 {
		return nil
	}
	return []line{{text: bytes.Clone(s.partial), from: s.from, time: history.Now()}}
}
