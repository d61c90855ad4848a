// Package sandbox runs the commands of an agent, as confined as the machine allows (spec 8.2,
// 11.3), and ends them.
//
// There are three tiers. Bubblewrap gives a command its own file trees, processes and network, with
// Landlock and seccomp inside. Landlock needs no other program: the kernel confines the command to
// lists of paths, and seccomp filters its system calls. None confines nothing. Probes attack each
// tier from inside; a tier with a successful attack is not used.
//
// A command runs below a helper, which is this same program started again (Stage). The helper watch
// ends everything that the command started and reports how it ended. Below it the helper enter
// gives up every right and becomes the command. In the tier Bubblewrap watch is the first process
// of a process namespace, so nothing outlives it; elsewhere it adopts orphans.
//
// # Bounds
//
// On Linux watch counts everything below it. It ends the command beyond a number of processes, of
// threads, or of bytes of resident memory. It freezes the whole tree before it kills it, so that
// nothing starts meanwhile. Elsewhere only the time is bounded, and the process group is ended: a
// process that leaves the group escapes.
//
// # Who owns what
//
// Run has three goroutines, which end before it returns. One starts the helper and waits for it, on
// its own thread, because helpers die with the thread that started them. One reads the output, and
// one reads the helper's reports. In the helper, watch has three more: one waits for the request to
// end the command or for its starter's death, and one for the command's start. The supervisor
// counts and ends the processes below.
package sandbox
