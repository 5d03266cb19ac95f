//go:build s3

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"lockcheck/history"
)

const s3BucketName = "locks"

// s3Opening bounds the creation of the bucket.
const s3Opening = 15 * time.Second

// s3RequestTimeout is the time limit of one request under the option request-timeout. The client library then
// sends the request again.
const s3RequestTimeout = time.Second

// s3Rounds is how often a change is tried.
const s3Rounds = 10

// s3Bucket is a bucket whose objects are JSON documents of type T, written only under a condition.
type s3Bucket[T any] struct {
	client *s3.Client
	name   string
}

// s3Entry is an object as it was read; the zero value if it does not exist.
type s3Entry[T any] struct {
	ETag    string
	Content T
}

// openS3Bucket connects to the first server and creates the bucket. Retries are those of the library: up to
// three requests for one call.
func openS3Bucket[T any](c Config) (s3Bucket[T], error) {
	if len(c.Nodes) != 1 {
		return s3Bucket[T]{}, fmt.Errorf("this lock needs one object store, not %d", len(c.Nodes))
	}
	options := s3.Options{
		Region: S3Region, BaseEndpoint: aws.String("http://" + c.Nodes[0]), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(S3AccessKey, S3SecretKey, ""),
	}
	if c.options.has(requestTimeout) {
		options.HTTPClient = &http.Client{Timeout: s3RequestTimeout}
	}
	b := s3Bucket[T]{client: s3.New(options), name: s3BucketName}
	ctx, cancel := context.WithTimeout(context.Background(), s3Opening)
	defer cancel()
	_, err := b.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &b.name})
	var owned *types.BucketAlreadyOwnedByYou
	var exists *types.BucketAlreadyExists
	if err != nil && !errors.As(err, &owned) && !errors.As(err, &exists) {
		return s3Bucket[T]{}, fmt.Errorf("bucket %s: %w", b.name, err)
	}
	return b, nil
}

// s3Key encodes a lock's name so that it is one path element.
func s3Key(lock string) *string { return aws.String("lock-" + url.PathEscape(lock)) }

var errNoETag = errors.New("the store sent no ETag")

// read returns the object of a lock. Reads are strongly consistent in S3. versitygw may return a newer body with an
// older ETag. A write with that ETag is refused, so the pair grants nothing.
func (b s3Bucket[T]) read(ctx context.Context, lock string) (entry s3Entry[T], err error) {
	object, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: s3Key(lock)})
	var missing *types.NoSuchKey
	if errors.As(err, &missing) {
		return entry, nil
	}
	if err != nil {
		return entry, &NoEffectError{Err: err}
	}
	defer object.Body.Close()
	body, err := io.ReadAll(object.Body)
	if err != nil {
		return entry, &NoEffectError{Err: err}
	}
	if err := json.Unmarshal(body, &entry.Content); err != nil {
		return entry, noEffect("lock %s: the object is no record: %w", lock, err)
	}
	if entry.ETag = aws.ToString(object.ETag); entry.ETag == "" {
		return entry, noEffect("lock %s: %w", lock, errNoETag)
	}
	return entry, nil
}

// errS3Condition: the store refused the last request of a call because its condition did not hold. The reason may be
// an earlier request of the same call, which took effect and was not answered.
var errS3Condition = errors.New("the condition of the write does not hold")

// inDoubt hides the type of an error, so that OutcomeOf returns Unknown: an earlier request of the call may have taken
// effect.
func inDoubt(err error) error { return fmt.Errorf("after a refused write: %v", err) }

// write replaces the object that has the ETag, or creates it if etag is "", and returns the new ETag.
func (b s3Bucket[T]) write(ctx context.Context, lock, etag string, content T) (string, error) {
	body, err := json.Marshal(content)
	if err != nil {
		return "", &NoEffectError{Err: err}
	}
	input := s3.PutObjectInput{Bucket: &b.name, Key: s3Key(lock), Body: bytes.NewReader(body), ContentType: aws.String("application/json")}
	if etag == "" {
		input.IfNoneMatch = aws.String("*")
	} else {
		input.IfMatch = &etag
	}
	answer, err := b.client.PutObject(ctx, &input)
	if err != nil {
		return "", s3Outcome(err)
	}
	if aws.ToString(answer.ETag) == "" {
		return "", errNoETag
	}
	return *answer.ETag, nil
}

func (b s3Bucket[T]) remove(ctx context.Context, lock string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: s3Key(lock)})
	return err
}

func (s3Bucket[T]) Close() error { return nil }

// s3Outcome recognizes a refused condition. S3 answers 404 to a write If-Match whose object is gone. It answers 409 to
// a write that conflicts with a concurrent one: nothing is certain then.
func s3Outcome(err error) error {
	var answer *smithyhttp.ResponseError
	var api smithy.APIError
	if !errors.As(err, &answer) || !errors.As(err, &api) {
		return err
	}
	if answer.HTTPStatusCode() == http.StatusPreconditionFailed || api.ErrorCode() == "NoSuchKey" {
		return errS3Condition
	}
	return err
}

// s3Record is the object of s3-conditional. The object stays when the lock is released, so that epochs grow.
type s3Record struct {
	ID    string `json:"id"`    // attempt of the last holder
	Held  bool   `json:"held"`  // false: released
	Epoch uint64 `json:"epoch"` // number of the grant, from 1
	// Renewals gives each renewal a new ETag, because an ETag is a hash of the content.
	Renewals uint64 `json:"renewals"`
	LeaseMS  int64  `json:"lease_ms"`
}

func (r s3Record) lease() time.Duration { return time.Duration(r.LeaseMS) * time.Millisecond }

// s3Conditional is a lease in an object that is written only by PUT with If-None-Match or If-Match. Clients never
// compare clocks. A client takes the lease over after it has seen the same ETag for the length of the lease, as
// amazon-dynamodb-lock-client does with the version number of a record. The holder counts from before its write, and
// a waiter from the end of a read that shows this write. So the holder's count ends first, if both clocks run
// equally fast and nobody deletes the record.
type s3Conditional struct {
	s3Bucket[s3Record]

	mu   sync.Mutex
	seen map[string]s3Sighting // by lock
}

// s3Sighting is when this client first saw an ETag, in ns of CLOCK_MONOTONIC.
type s3Sighting struct {
	etag string
	at   int64
}

func openS3Conditional(c Config) (Lock, error) {
	bucket, err := openS3Bucket[s3Record](c)
	if err != nil {
		return nil, err
	}
	return &s3Conditional{s3Bucket: bucket, seen: make(map[string]s3Sighting)}, nil
}

// unchangedFor returns for how long this client has seen the lock with this ETag.
func (l *s3Conditional) unchangedFor(lock, etag string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := history.Now()
	if sighting := l.seen[lock]; sighting.etag == etag {
		return time.Duration(now - sighting.at)
	}
	l.seen[lock] = s3Sighting{etag: etag, at: now}
	return 0
}

func (l *s3Conditional) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	last, err := l.read(ctx, a.Key)
	if err != nil {
		return Grant{}, err
	}
	if last.Content.Held && l.unchangedFor(a.Key, last.ETag) < last.Content.lease() {
		return Grant{}, &BusyError{Holder: last.Content.ID}
	}
	start := history.Now()
	next := s3Record{ID: a.ID, Held: true, Epoch: last.Content.Epoch + 1, LeaseMS: a.TTL.Milliseconds()}
	if _, err := l.write(ctx, a.Key, last.ETag, next); errors.Is(err, errS3Condition) {
		now, err := l.read(ctx, a.Key)
		switch {
		case err != nil:
			return Grant{}, inDoubt(err)
		case now.Content != next:
			return Grant{}, &BusyError{Holder: now.Content.holder()}
		}
	} else if err != nil {
		return Grant{}, err
	}
	return Grant{Key: a.Key, ID: a.ID, Token: next.Epoch, Until: start + next.lease().Nanoseconds()}, nil
}

// holder names the holder; "" if the lock is released.
func (r s3Record) holder() string {
	if !r.Held {
		return ""
	}
	return r.ID
}

func (l *s3Conditional) Release(ctx context.Context, g Grant) error {
	return l.change(ctx, g, func(r *s3Record) { r.Held = false })
}

// Renew implements Renewer.
func (l *s3Conditional) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	start := history.Now()
	err := l.change(ctx, g, func(r *s3Record) { r.Renewals, r.LeaseMS = r.Renewals+1, ttl.Milliseconds() })
	if err != nil {
		return 0, err
	}
	return start + ttl.Truncate(time.Millisecond).Nanoseconds(), nil
}

// change edits the record while the grant holds the lock. It begins again after a refused write: a renewal of the same
// grant may have come in between, or the library has repeated the write. After that only the record itself can
// show the outcome. A store that never accepts its own ETags is given up after s3Rounds.
func (l *s3Conditional) change(ctx context.Context, g Grant, edit func(*s3Record)) error {
	var written s3Record
	refused := false
	for range s3Rounds {
		last, err := l.read(ctx, g.Key)
		switch {
		case refused && err == nil && last.Content == written:
			return nil
		case err == nil && last.Content.holder() != g.ID:
			err = ErrNotHeld
		}
		if err != nil && refused {
			return inDoubt(err)
		} else if err != nil {
			return err
		}
		written = last.Content
		edit(&written)
		if _, err := l.write(ctx, g.Key, last.ETag, written); !errors.Is(err, errS3Condition) {
			return err
		}
		refused = true
	}
	return inDoubt(errS3Condition)
}

// Holds implements Asker.
func (l *s3Conditional) Holds(ctx context.Context, g Grant) (bool, error) {
	last, err := l.read(ctx, g.Key)
	return err == nil && last.Content.holder() == g.ID, err
}

// s3TrustsRefusal is s3Conditional with a renewal that treats every refusal as a loss. It knows the ETag of its last
// write that was answered. If a renewal takes effect and is not answered, the store refuses the next one.
type s3TrustsRefusal struct {
	*s3Conditional
	lastWritten handles[s3Entry[s3Record]]
}

func openS3TrustsRefusal(c Config) (Lock, error) {
	lock, err := openS3Conditional(c)
	if err != nil {
		return nil, err
	}
	return &s3TrustsRefusal{s3Conditional: lock.(*s3Conditional)}, nil
}

func (l *s3TrustsRefusal) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	grant, err := l.s3Conditional.Acquire(ctx, a)
	if err != nil {
		return grant, err
	}
	last, err := l.read(ctx, a.Key)
	if err != nil {
		return Grant{}, inDoubt(err)
	}
	l.lastWritten.put(a.ID, last)
	return grant, nil
}

func (l *s3TrustsRefusal) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	last, known := l.lastWritten.get(g.ID)
	if !known || last.Content.holder() != g.ID {
		return 0, ErrNotHeld
	}
	start := history.Now()
	last.Content.Renewals, last.Content.LeaseMS = last.Content.Renewals+1, ttl.Milliseconds()
	etag, err := l.write(ctx, g.Key, last.ETag, last.Content)
	switch {
	case errors.Is(err, errS3Condition):
		return 0, ErrNotHeld
	case err != nil:
		return 0, err
	}
	last.ETag = etag
	l.lastWritten.put(g.ID, last)
	return start + last.Content.lease().Nanoseconds(), nil
}

func (l *s3TrustsRefusal) Release(ctx context.Context, g Grant) error {
	l.lastWritten.take(g.ID)
	return l.s3Conditional.Release(ctx, g)
}

// s3LockInfo is the content of a lock file.
type s3LockInfo struct{ ID string }

// s3Lockfile is the lock of Terraform's S3 backend with use_lockfile: an object that PUT with If-None-Match
// creates, and that its holder removes after it has read whose object it is. It has no lease. As in Terraform no
// request has a deadline. A DELETE that the library repeats can remove the object of the next holder, and a PUT that
// arrives late can leave an object that nobody removes.
type s3Lockfile struct {
	s3Bucket[s3LockInfo]
	// rereads: a refused attempt reads the object, and has the lock if the object is its own.
	rereads bool
}

func openS3Lockfile(c Config) (Lock, error) {
	bucket, err := openS3Bucket[s3LockInfo](c)
	if err != nil {
		return nil, err
	}
	return &s3Lockfile{s3Bucket: bucket, rereads: c.options.has(reread)}, nil
}

func (l *s3Lockfile) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	ctx = context.WithoutCancel(ctx)
	_, err := l.write(ctx, a.Key, "", s3LockInfo{ID: a.ID})
	switch {
	case errors.Is(err, errS3Condition):
		return l.refused(ctx, a)
	case err != nil:
		return Grant{}, err
	}
	return Grant{Key: a.Key, ID: a.ID}, nil
}

// refused names the holder, as Terraform does in its message.
func (l *s3Lockfile) refused(ctx context.Context, a Attempt) (Grant, error) {
	holder, err := l.read(ctx, a.Key)
	switch {
	case l.rereads && err != nil:
		return Grant{}, inDoubt(err)
	case l.rereads && holder.Content.ID == a.ID:
		return Grant{Key: a.Key, ID: a.ID}, nil
	}
	return Grant{}, &BusyError{Holder: holder.Content.ID}
}

func (l *s3Lockfile) Release(ctx context.Context, g Grant) error {
	ctx = context.WithoutCancel(ctx)
	holder, err := l.read(ctx, g.Key)
	switch {
	case err != nil:
		return err
	case holder.Content.ID != g.ID:
		return ErrNotHeld
	}
	return l.remove(ctx, g.Key)
}

// Holds implements Asker.
func (l *s3Lockfile) Holds(ctx context.Context, g Grant) (bool, error) {
	holder, err := l.read(ctx, g.Key)
	return err == nil && holder.Content.ID == g.ID, err
}
