// Package disk stores small files that survive crashes. After any system call there is the old file
// or the new one. Only regular files are read, up to an agreed size.
package disk
