//go:build kubernetes

// Command kubernetes is the worker program that links Kubernetes' client-go, which takes as long to compile as
// lockcheck without it.
package main

import "lockcheck/internal/workerprogram"

func main() { workerprogram.Main() }
