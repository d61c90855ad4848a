// Package keyring keeps keys of model servers in the keyring of the operating system: the Secret
// Service on Linux and BSD, the keychain on macOS, the credential manager on Windows (spec 10.1,
// 11.2).
//
// A keyring is another process that may ask a person first, or never answer. Each request therefore
// runs in its own goroutine, and callers wait for it up to a bound. A late goroutine ends with its
// answer, or with the process.
package keyring
