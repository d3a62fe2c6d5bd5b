import BluehaulTool
print("bluehaul")
