package vdso

import (
	"encoding/binary"
	"slices"
)

// This is the code that replaces the vDSO's. Each function makes the system call, which fails only where the
// vDSO's function does, and moves the time by the clock file at an address. It changes only registers that the
// System V ABI lets a callee change.

// replacements maps each replaced function of the vDSO to the generator of its replacement.
var replacements = map[string]func(offset uint64) []byte{
	"__vdso_clock_gettime": clockGettime,
	"__vdso_gettimeofday":  gettimeofday,
	"__vdso_time":          seconds,
}

// add moves a non-negative time of r8 seconds and rax nanoseconds by the clock file at the address. The results
// are r8, the seconds, and rdx, the nanoseconds from 0 to below 1e9. It also uses rax and rcx. It reads tooFast
// before since, or a speed that is just being set would count from 1970. The product has 128 bits. The quotient
// fits into 64 bits unless the clock is off by centuries.
func add(clock uint64) []byte {
	billion := []byte{0x00, 0xca, 0x9a, 0x3b}
	return slices.Concat(
		[]byte{0x48, 0xb9}, word(clock), //         mov rcx, clock
		[]byte{0x4d, 0x69, 0xc0}, billion, //       imul r8, r8, 1000000000
		[]byte{0x4c, 0x01, 0xc0},            //     add rax, r8
		[]byte{0x49, 0x89, 0xc0},            //     mov r8, rax
		[]byte{0x4c, 0x03, 0x01},            //     add r8, [rcx]
		[]byte{0x48, 0x8b, 0x51, tooFastAt}, //     mov rdx, [rcx+tooFast]
		[]byte{0x48, 0x2b, 0x41, sinceAt},   //     sub rax, [rcx+since]
		[]byte{0x48, 0xf7, 0xea},            //                imul rdx
		[]byte{0xb9}, billion,               //                   mov ecx, 1000000000
		[]byte{0x48, 0xf7, 0xf9}, //                idiv rcx
		[]byte{0x4c, 0x01, 0xc0}, //                add rax, r8
		[]byte{0x48, 0x99},       //                cqo
		[]byte{0x48, 0xf7, 0xf9}, //                idiv rcx
		[]byte{0x48, 0x85, 0xd2}, //                test rdx, rdx
		[]byte{0x79, 0x06},       //                jns positive
		[]byte{0x48, 0x01, 0xca}, //                add rdx, rcx
		[]byte{0x48, 0xff, 0xc8}, //                dec rax
		[]byte{0x49, 0x89, 0xc0}, //                positive: mov r8, rax
	)
}

// clockGettime is int clock_gettime(clockid_t, struct timespec *). It moves
// CLOCK_REALTIME and CLOCK_REALTIME_COARSE.
func clockGettime(offset uint64) []byte {
	move := slices.Concat(
		[]byte{0x4c, 0x8b, 0x06},       //       mov r8, [rsi]
		[]byte{0x48, 0x8b, 0x46, 0x08}, //       mov rax, [rsi+8]
		add(offset),
		[]byte{0x4c, 0x89, 0x06},       //       mov [rsi], r8
		[]byte{0x48, 0x89, 0x56, 0x08}, //       mov [rsi+8], rdx
		[]byte{0x31, 0xc0},             //       xor eax, eax
	)
	which := slices.Concat(
		[]byte{0x85, 0xff},                  //  test edi, edi (CLOCK_REALTIME)
		[]byte{0x74, 0x05},                  //  jz move
		[]byte{0x83, 0xff, 0x05},            //  cmp edi, CLOCK_REALTIME_COARSE
		[]byte{0x75, byte(len(move))}, move, //  jne done
	)
	return slices.Concat(
		[]byte{0xb8, 0xe4, 0x00, 0x00, 0x00},  //  mov eax, SYS_clock_gettime
		[]byte{0x0f, 0x05},                    //  syscall
		[]byte{0x85, 0xc0},                    //  test eax, eax
		[]byte{0x75, byte(len(which))}, which, //  jnz done
		[]byte{0xc3}, //                           done: ret
	)
}

// gettimeofday is int gettimeofday(struct timeval *, struct timezone *). The first pointer may be NULL.
func gettimeofday(offset uint64) []byte {
	move := slices.Concat(
		[]byte{0x4c, 0x8b, 0x07},                               //  mov r8, [rdi]
		[]byte{0x48, 0x69, 0x47, 0x08, 0xe8, 0x03, 0x00, 0x00}, //  imul rax, [rdi+8], 1000
		add(offset),
		[]byte{0x4c, 0x89, 0x07},             //    mov [rdi], r8
		[]byte{0x48, 0x89, 0xd0},             //    mov rax, rdx
		[]byte{0x31, 0xd2},                   //    xor edx, edx
		[]byte{0xb9, 0xe8, 0x03, 0x00, 0x00}, //    mov ecx, 1000
		[]byte{0x48, 0xf7, 0xf1},             //    div rcx
		[]byte{0x48, 0x89, 0x47, 0x08},       //    mov [rdi+8], rax
		[]byte{0x31, 0xc0},                   //    xor eax, eax
	)
	wanted := slices.Concat(
		[]byte{0x48, 0x85, 0xff},            //     test rdi, rdi
		[]byte{0x74, byte(len(move))}, move, //     jz done
	)
	return slices.Concat(
		[]byte{0xb8, 0x60, 0x00, 0x00, 0x00},    // mov eax, SYS_gettimeofday
		[]byte{0x0f, 0x05},                      // syscall
		[]byte{0x85, 0xc0},                      // test eax, eax
		[]byte{0x75, byte(len(wanted))}, wanted, // jnz done
		[]byte{0xc3}, //                            done: ret
	)
}

// seconds is time_t time(time_t *). The pointer may be NULL. Like the vDSO it reads CLOCK_REALTIME_COARSE.
// SYS_time would return no fraction to add the offset's fraction to.
func seconds(offset uint64) []byte {
	return slices.Concat(
		[]byte{0x57},                         //    push rdi
		[]byte{0x48, 0x83, 0xec, 0x10},       //    sub rsp, 16
		[]byte{0xbf, 0x05, 0x00, 0x00, 0x00}, //    mov edi, CLOCK_REALTIME_COARSE
		[]byte{0x48, 0x89, 0xe6},             //    mov rsi, rsp
		[]byte{0xb8, 0xe4, 0x00, 0x00, 0x00}, //    mov eax, SYS_clock_gettime
		[]byte{0x0f, 0x05},                   //    syscall
		[]byte{0x4c, 0x8b, 0x04, 0x24},       //    mov r8, [rsp]
		[]byte{0x48, 0x8b, 0x44, 0x24, 0x08}, //    mov rax, [rsp+8]
		[]byte{0x48, 0x83, 0xc4, 0x10},       //    add rsp, 16
		[]byte{0x5f},                         //    pop rdi
		add(offset),
		[]byte{0x4c, 0x89, 0xc0}, //                mov rax, r8
		[]byte{0x48, 0x85, 0xff}, //                test rdi, rdi
		[]byte{0x74, 0x03},       //                jz done
		[]byte{0x48, 0x89, 0x07}, //                mov [rdi], rax
		[]byte{0xc3},             //                done: ret
	)
}

// jump continues at an address. It overwrites the beginning of a function.
func jump(to uint64) []byte {
	return slices.Concat(
		[]byte{0x48, 0xb8}, word(to), //            mov rax, to
		[]byte{0xff, 0xe0}, //                      jmp rax
	)
}

// reap waits for the end of a child and continues at an address. It leaves zeros in the registers that it uses,
// as the kernel does when it starts a program.
func reap(child uint32, then uint64) []byte {
	wait := slices.Concat(
		[]byte{0xbf}, binary.LittleEndian.AppendUint32(nil, child), // mov edi, child
		[]byte{0x31, 0xf6},                   //    xor esi, esi
		[]byte{0x31, 0xd2},                   //    xor edx, edx
		[]byte{0x45, 0x31, 0xd2},             //    xor r10d, r10d
		[]byte{0xb8, 0x3d, 0x00, 0x00, 0x00}, //    mov eax, SYS_wait4
		[]byte{0x0f, 0x05},                   //    syscall
		[]byte{0x83, 0xf8, 0xfc},             //    cmp eax, -EINTR
	)
	return slices.Concat(
		wait,
		[]byte{0x74, byte(-(len(wait) + 2))}, // je wait
		[]byte{0x31, 0xc0},                   // xor eax, eax
		[]byte{0x31, 0xff},                   // xor edi, edi
		[]byte{0x31, 0xc9},                   // xor ecx, ecx
		[]byte{0x45, 0x31, 0xdb},             // xor r11d, r11d
		[]byte{0xff, 0x25, 0x00, 0x00, 0x00, 0x00}, // jmp [rip]
		word(then),
	)
}

func word(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
