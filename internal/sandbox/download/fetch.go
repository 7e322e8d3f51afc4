package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// ErrUnavailable reports that a file did not arrive.
var ErrUnavailable = errors.New("cannot download")

// Fetch downloads a file to a path and makes it executable. On any error, nothing is at that path.
//
// Errors: a wrong checksum, an error that wraps ErrUnavailable, that of the context, or one of the
// file system.
func (s Source) Fetch(ctx context.Context, f File, path string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	from, hash := s.Base+f.Path, sha256.New()
	if err := s.copy(ctx, io.MultiWriter(file, hash), from); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w %s: %w", ErrUnavailable, from, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("%s has SHA-256 %s, expected %s; the file was discarded", from, got, f.SHA256)
	}
	return nil
}

// copy writes the answer of a server. One that is too large is cut.
func (s Source) copy(ctx context.Context, to io.Writer, from string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", response.Status)
	}
	_, err = io.Copy(to, io.LimitReader(response.Body, maxSize))
	return err
}
