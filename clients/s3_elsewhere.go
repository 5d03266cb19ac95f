//go:build !s3

package clients

import "errors"

// errS3Elsewhere: programs other than lockcheck-s3 do not link the AWS SDK.
var errS3Elsewhere = errors.New("the AWS SDK is linked into lockcheck-s3 only (go build -tags s3)")

func openS3Conditional(Config) (Lock, error)   { return nil, errS3Elsewhere }
func openS3Lockfile(Config) (Lock, error)      { return nil, errS3Elsewhere }
func openS3TrustsRefusal(Config) (Lock, error) { return nil, errS3Elsewhere }
