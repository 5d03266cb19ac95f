// Command redsync-4.12.0 is the worker program with that version of redsync.
package main

import "lockcheck/internal/workerprogram"

func main() { workerprogram.Main() }
