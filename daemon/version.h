/*
 * The version of the whole: programs, files and messages of one build belong together.
 */
#ifndef DAEMON_VERSION_H
#define DAEMON_VERSION_H

#define PROOFD_VERSION "0.1.0"

#endif
