#include "daemon/notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int notify_send(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;

    if (len == 0)
        return 0;
    if (len >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    memcpy(addr.sun_path, path, len);
    if (path[0] == '@') /* the abstract namespace */
        addr.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    ssize_t n = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&addr,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    int ret = n < 0 ? -errno : 0;
    close(fd);
    return ret;
}

uint32_t notify_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    unsigned long long n = strtoull(usec, NULL, 10);
    return n / 2000 > UINT32_MAX ? 0 : (uint32_t)(n / 2000);
}
