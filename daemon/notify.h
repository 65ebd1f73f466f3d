/*
 * Tells the service manager how things stand: the protocol of sd_notify(3), a datagram to
 * $NOTIFY_SOCKET, without its library.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include "numa/base.h"

/* Sends `text` ("READY=1\nSTATUS=..."). 0 when it was sent or nobody asks for it; a negative errno. */
int notify_send(const char *text);

/* How often the manager wants WATCHDOG=1, in milliseconds (half of what it allows); 0: it does not. */
uint32_t notify_watchdog_ms(void);

#endif
