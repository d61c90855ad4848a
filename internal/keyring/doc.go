// Package keyring keeps keys of model servers in the keyring of the operating system: the Secret
// Service on Linux and BSD, the keychain on macOS, the credential manager on Windows (spec 10.1,
// 11.2).
//
// A keyring is another process that may ask a person first, or never answer. Each request therefore
// runs in a goroutine of its own, which nobody waits for longer than a bound: one that comes too
// late ends with its answer, or with the process.
package keyring
