package clusters

const redisPort = 6379

// redisSpec is a number of independent servers of Redis, or of its fork Valkey, without persistence. The
// default snapshots are switched off.
func redisSpec(name, program string, nodes int, sizes ...int) Spec {
	return Spec{
		Name: name, Nodes: nodes, Sizes: sizes, Image: program, Official: true,
		Server: func(int) Server { return redisServer(program) },
	}
}

// redisAOFSpec is one Redis with an append-only file, which it syncs as the policy says (appendfsync).
func redisAOFSpec(name, policy string) Spec {
	return Spec{
		Name: name, Nodes: 1, Image: "redis", Official: true,
		Server: func(int) Server {
			server := redisServer("redis", "--appendonly", "yes", "--appendfsync", policy)
			command := server.Command
			server.Command = func(p Place) []string { return append(command(p), "--dir", p.Folder) }
			server.NoWipe = nil
			return server
		},
	}
}

// redisServer is a server of Redis or of its fork, whose programs differ by name only. It has no persistence
// unless the arguments enable it.
func redisServer(program string, args ...string) Server {
	return Server{
		Program: program, Port: redisPort, Probes: redisProbes{version: program + "_version"},
		Command: func(Place) []string {
			return append([]string{
				program + "-server", "--bind", "0.0.0.0", "--protected-mode", "no",
				"--save", "", "--appendonly", "no", "--dir", "/tmp",
			}, args...)
		},
		NoWipe: errNothingOnDisk,
		// jemalloc's start calls the clock before libfaketime is ready. Loading libc's debug malloc after
		// libfaketime breaks the circle.
		ClockEnv: []string{
			"LD_PRELOAD=" + faketimeLibrary + ":/lib/x86_64-linux-gnu/libc_malloc_debug.so.0",
		},
	}
}
