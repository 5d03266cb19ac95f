//go:build s3

// Command s3 is the worker program that links the AWS SDK.
package main

import "lockcheck/internal/workerprogram"

func main() { workerprogram.Main() }
