#include <bluetooth/bluetooth.h>
#include <bluetooth/l2cap.h>
