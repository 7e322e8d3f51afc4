package download

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const (
	// officialBase is the URL below which the Kubernetes project publishes its releases.
	officialBase = "https://dl.k8s.io/release/"
	// timeout bounds the download of one program.
	timeout = 10 * time.Minute
	// maxSize is the size of the largest program that is accepted; kube-apiserver has 90 MB.
	maxSize = 512 << 20
)

//go:embed checksums.txt
var checksums string

// Source is a server with programs, and the checksums that they must have.
type Source struct {
	// Base is the URL below which the paths of Sums lie. It ends with a slash.
	Base string
	// Sums are SHA-256 hashes in hexadecimal digits, by path.
	Sums map[string]string
	// Client makes the requests.
	Client *http.Client
	// Timeout bounds the download of one program.
	Timeout time.Duration
}

// Official returns the server of the Kubernetes project and the checksums pinned here.
func Official() Source {
	return Source{Base: officialBase, Sums: parse(checksums), Client: &http.Client{}, Timeout: timeout}
}

// File is a program that can be downloaded.
type File struct {
	// Path lies below the base of a Source.
	Path string
	// SHA256 is the hash that the file must have, in hexadecimal digits.
	SHA256 string
}

// File returns a program of a Kubernetes version, without "v", for a platform in the words of Go.
// It returns false if no checksum is pinned for it.
func (s Source) File(version, system, arch, program string) (File, bool) {
	path := fmt.Sprintf("v%s/bin/%s/%s/%s", version, system, arch, program)
	sum, ok := s.Sums[path]
	return File{Path: path, SHA256: sum}, ok
}

// parse reads lines of a hash and a path, as sha256sum writes them.
func parse(text string) map[string]string {
	sums := map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[0] != "#" {
			sums[fields[1]] = fields[0]
		}
	}
	return sums
}
