// Package sandbox runs the commands of an agent, as confined as the machine allows (spec 8.2,
// 11.3), and brings them to an end.
//
// There are three tiers. Bubblewrap gives a command file trees, processes and a network of its own,
// and Landlock and seccomp stand inside that again. Landlock needs no other program: the kernel
// holds the command to lists of paths, and a filter of system calls to what a command needs. None
// confines nothing. Which tier a machine has is found out by trying: probes attack from inside, and
// a tier from which one of them gets out is not used.
//
// A command runs below a helper, which is this same program started again (Stage): watch, which
// ends everything that the command has started and tells how it ended, and below that enter, which
// gives up every right and becomes the command. In the tier Bubblewrap watch is the first process
// of a process namespace, so that nothing outlives it; elsewhere it is the one that orphans are
// given to.
//
// # Bounds
//
// On Linux watch counts everything below it and ends the command beyond a number of processes, of
// threads, or of bytes of resident memory. It freezes the whole tree before it kills it, so that
// nothing is started meanwhile. Elsewhere only the time is bounded, and the process group is ended:
// a process that leaves the group escapes.
//
// # Who owns what
//
// Run has three goroutines, which end before it returns: one starts the helper and waits for it, on
// a thread of its own, because helpers die with the thread that started them; one reads the output;
// one reads what the helper reports. In the helper, watch has one goroutine that waits for the end
// of what it is told (its starter's death included), one for the start of the command, and one, the
// supervisor, that counts and ends what is below.
package sandbox
