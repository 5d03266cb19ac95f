/* Tells what main.go next to it tells, of all functions of the vDSO for the time. On
   the line "fork" a child takes over. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long truly(clockid_t clock) {
	struct timespec t;
	if (syscall(SYS_clock_gettime, clock, &t) != 0) _exit(9);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void tell(const char *name, long long before, long long s, long long fraction, long long after, long long unit) {
	printf("%s %lld %lld %lld %lld %lld\n", name, before, s, fraction, after, unit);
}

static void tell_clock(const char *name, clockid_t clock) {
	struct timespec t;
	long long before = truly(clock);
	if (clock_gettime(clock, &t) != 0) _exit(8);
	tell(name, before, t.tv_sec, t.tv_nsec, truly(clock), 1);
}

static void tell_others(void) {
	struct timeval v;
	struct timezone zone;
	time_t stored = 0, s;
	long long before = truly(CLOCK_REALTIME);
	if (gettimeofday(&v, NULL) != 0) _exit(7);
	tell("gettimeofday", before, v.tv_sec, v.tv_usec, truly(CLOCK_REALTIME), 1000);
	before = truly(CLOCK_REALTIME_COARSE);
	s = time(NULL);
	tell("time", before, s, 0, truly(CLOCK_REALTIME_COARSE), 1000000000);
	before = truly(CLOCK_REALTIME_COARSE);
	if (time(&stored) < s) _exit(6);
	tell("time-stored", before, stored, 0, truly(CLOCK_REALTIME_COARSE), 1000000000);
	if (gettimeofday(NULL, &zone) != 0 || gettimeofday(NULL, NULL) != 0) _exit(5);
	if (clock_gettime(12345, NULL) != -1 || errno != EINVAL) _exit(4);
}

int main(void) {
	char line[100];
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	while (fgets(line, sizeof line, stdin) != NULL) {
		if (strcmp(line, "fork\n") == 0 && fork() != 0) {
			int status = 0;
			wait(&status);
			return status != 0;
		}
		tell_clock("realtime", CLOCK_REALTIME);
		tell_clock("coarse", CLOCK_REALTIME_COARSE);
		tell_clock("monotonic", CLOCK_MONOTONIC);
		tell_clock("boottime", CLOCK_BOOTTIME);
		tell_others();
		puts("end");
		fflush(stdout);
	}
	return 0;
}
